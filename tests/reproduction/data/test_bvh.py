"""Joints are where the offsets and rotations of a BVH file put them."""

import numpy as np
import pytest

from reproduction.data.mocap import joint_positions, parse_bvh, read_bvh

# A body that walks and turns, with an arm of two links and a leg.
ARM = """HIERARCHY
ROOT Body
{
\tOFFSET 0.5 0.5 0.5
\tCHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
\tJOINT Upper
\t{
\t\tOFFSET 1 0 0
\t\tCHANNELS 3 Zrotation Yrotation Xrotation
\t\tJOINT Lower
\t\t{
\t\t\tOFFSET 2 0 0
\t\t\tCHANNELS 3 Zrotation Yrotation Xrotation
\t\t\tEnd Site
\t\t\t{
\t\t\t\tOFFSET 0 0 3
\t\t\t}
\t\t}
\t}
\tJOINT Leg
\t{
\t\tOFFSET 0 -4 0
\t\tCHANNELS 1 Xrotation
\t}
}
MOTION
Frames: 4
Frame Time: .0083333
7 8 9  0 0 0   0 0 0   0 0 0   0
7 8 9  90 0 0  0 0 0   0 0 0   0
0 0 0  0 0 0   90 0 0  0 0 90  0
0 0 0  0 0 0   0 0 0   90 90 0 45
"""
# Worked out by hand; a turn about z takes x to y, one about x takes y to z, z to -y.
AT = {
    "Upper": [[1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]],
    "Lower": [[3, 0, 0], [0, 3, 0], [1, 2, 0], [3, 0, 0]],
    # Frame 2: R_z(90) R_x(90) (0, 0, 3) = R_z(90) (0, -3, 0) = (3, 0, 0).
    # Frame 3: R_z(90) R_y(90) (0, 0, 3) = R_z(90) (3, 0, 0) = (0, 3, 0).
    "Lower_End": [[3, 0, 3], [0, 3, 3], [4, 2, 0], [3, 3, 0]],
    "Leg": [[0, -4, 0], [4, 0, 0], [0, -4, 0], [0, -4, 0]],
}


def test_joints_are_where_they_were_worked_out_to_be():
    motion = parse_bvh(ARM)
    positions = joint_positions(motion)
    np.testing.assert_array_equal(positions[:, 0], 0.0)  # the walk is left out
    names = [joint.name for joint in motion.joints]
    for name, expected in AT.items():
        np.testing.assert_allclose(
            positions[:, names.index(name)], expected, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("MOTION", "MOVEMENT"),
        ("Frames: 4", "Frames: 5"),
        ("Frame Time: .0083333\n", ""),
        ("45\n", "forty-five\n"),
        ("\t}\n}\n", "\t}\n"),
        ("OFFSET 0 0 3", "OFFSET 0 0"),
        ("1 Xrotation", "1 Wrotation"),
        ("1 Xrotation", "9 Xrotation"),
        ("ROOT", "STEM"),
        (ARM, ""),
    ],
)
def test_file_that_is_not_bvh_is_named(tmp_path, old, new):
    assert old in ARM
    path = tmp_path / "broken.bvh"
    path.write_text(ARM.replace(old, new))
    with pytest.raises(ValueError, match=r"broken\.bvh is not a BVH file"):
        read_bvh(path)

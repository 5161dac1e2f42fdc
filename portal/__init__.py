"""The portal: where a platform team says yes quickly and safely. Which room does what is said in each module.

Nothing is imported here, so that `portal.domain` and `portal.rendering` stay plain Python.
"""

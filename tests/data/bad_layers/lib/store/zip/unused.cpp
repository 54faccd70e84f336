// Nothing in its layer includes this folder.

"""DOOR for machines: parse, call one service, serialize. What is right and who may see it is for services."""

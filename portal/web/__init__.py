"""DOOR for people: pages, forms, the approver's inbox. Plain server-rendered HTML that works without JavaScript.

A view reads what was typed, calls one verb of the services, and shows a page. Not in charge of: rules (domain), writing
anything (services), or machines (api).
"""

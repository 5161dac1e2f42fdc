"""Offerings in the OpenAPI document."""

from __future__ import annotations

from portal.api.schemas import examples
from portal.api.schemas.common import (
    AnyObject,
    day,
    example,
    operation,
    page_example,
    page_of,
    problem_example,
    shape,
    text,
)

TAG = "offerings"
Offering = shape(
    "Offering",
    name=text(),
    title=text(),
    description=text(),
    owner=text(),
    kind=text(),
    apiVersion=text(),
    digest=text(),
    schema=AnyObject(help_text="The JSON schema of `spec`"),
    catalog=shape(
        "CatalogShape", kind=text(), type=text(), lifecycle=text(), api=text(null=True, choices=["openai"])
    )(),
    deprecation=shape("Deprecation", message=text(), after=day())(allow_null=True),
)
LIST = operation(
    "listOfferings",
    "List offerings",
    TAG,
    page_of(Offering),
    [page_example("offerings", examples.OFFERING, "offerings")],
)
READ = operation(
    "readOffering",
    "Read an offering",
    TAG,
    Offering,
    [
        example("offering", examples.OFFERING),
        problem_example(404, "not-found", "There is no offering 'mainframes' that you can see."),
    ],
    errors=(404,),
)

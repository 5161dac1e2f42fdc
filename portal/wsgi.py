"""In charge of: the WSGI entry point. Not in charge of: the server around it (portal/running/web.py)."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

application = get_wsgi_application()

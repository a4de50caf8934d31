"""``python -m penstock.cli``, for processes that must run with this very interpreter."""

import sys

from penstock.cli.main import main

sys.exit(main())

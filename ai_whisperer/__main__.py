"""`python -m ai_whisperer` is the command `whisperer`."""

import sys

from ai_whisperer.cli.main import main

sys.exit(main())

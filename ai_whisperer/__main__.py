"""`python -m ai_whisperer` is the command `whisperer`."""

import os
import sys

# Like the command, import nothing from the current folder: agents may be allowed to write there.
if not sys.flags.safe_path and not __file__.startswith(os.path.join(sys.path[0], "ai_whisperer")):
    del sys.path[0]

from ai_whisperer.cli.main import main

sys.exit(main())

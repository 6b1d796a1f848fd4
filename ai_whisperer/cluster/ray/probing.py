"""Whether a Ray lets anybody in, as a program: `python -m ai_whisperer.cluster.ray.probing HOST:PORT`.

It asks as the environment says (`RAY_AUTH_MODE`), and prints one line: `in VERSION`, `out`, or `none` and why. It is a
process of its own, since Ray looks at the environment once.
"""

from __future__ import annotations

import json
import sys

_PATIENCE_SECONDS = 10


def ask(address: str) -> str:
    from ray._raylet import GcsClient
    from ray.exceptions import AuthenticationError, RayError

    try:
        told = GcsClient(address=address).internal_kv_get(b"CLUSTER_METADATA", b"cluster", timeout=_PATIENCE_SECONDS)
    except AuthenticationError:
        return "out"
    except (RayError, RuntimeError, OSError) as error:
        return f"none {str(error).strip().partition(chr(10))[0]}"
    return f"in {json.loads(told or b'{}').get('ray_version', 'unknown')}"


if __name__ == "__main__":
    sys.stdout.write(f"{ask(sys.argv[1])}\n")

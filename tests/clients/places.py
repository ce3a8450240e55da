"""Where the programs under test lie; `tests/run` sets both variables, by hand the usual places do."""

import os
from pathlib import Path

TARGET = Path(__file__).resolve().parents[2] / "target"
BRIDGE = Path(os.environ.get("RESPONSES_BRIDGE_BIN", TARGET / "debug" / "responses-bridge"))
NODE_MODULES = Path(os.environ.get("NODE_CLIENTS", TARGET / "test-tools" / "node")) / "node_modules"

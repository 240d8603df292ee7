"""Takes an answer; gives JSON-ready data, text for a terminal, or Markdown. Read `document.py` first.

Each answer becomes a `Document` (one module an answer: `plan.py`, `memory.py`, …), which `text.py` and
`markdown.py` render. No number is computed here: what is printed stands in the answer.
"""

"""Takes a browser's addresses; gives pages. Read `pages.py` first, then `templates/page.html`.

Every page is rendered here and works without script; `static/page.js` only asks again as inputs change. The address
holds the whole question. No asset comes from elsewhere.
"""

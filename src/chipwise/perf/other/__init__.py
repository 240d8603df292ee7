"""Takes a `ModelSpec` and what one request is (an image, a sentence, seconds of audio); gives passes and their seconds.

Read `passes.py` first, then `build.py` (which model becomes which passes) and `seconds.py`.
"""

"""The look of the page."""

LIGHT = "#ffffff"
DARK = "#14171a"

STYLESHEET = f"""
:root {{ color-scheme: light dark; --back: {LIGHT}; --ink: #1d2126; --faint: #5c6570;
  --line: #d9dde2; --bad: #b3261e; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --back: {DARK}; --ink: #e4e7ea; --faint: #9aa4af; --line: #343a41; --bad: #ff8a80; }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--back);
  color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }}
h1 {{ font-size: 1.5rem; margin: .5rem 0; }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 .5rem; }}
p {{ max-width: 46rem; }}
.notes {{ border-left: .25rem solid var(--bad); padding: .1rem 1rem; }}
.notes ul {{ padding-left: 1rem; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }}
th, td {{ border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: right;
  white-space: nowrap; vertical-align: top; }}
thead th {{ white-space: normal; vertical-align: bottom; }}
tbody th {{ text-align: left; position: sticky; left: 0; background: var(--back); }}
td small {{ display: block; color: var(--faint); }}
strong {{ color: var(--bad); }}
.plots {{ display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }}
figure {{ margin: 0; min-width: 0; }}
figure h3 {{ font-size: 1rem; margin: 0 0 .3rem; }}
figure > svg {{ display: block; width: 100%; height: auto; max-width: 34rem; }}
figure > svg * {{ stroke-linejoin: round; }}
figure > svg text {{ font-family: system-ui, sans-serif !important; }}
figcaption {{ font-size: .85rem; color: var(--faint); max-width: 34rem; }}
.legend {{ display: flex; flex-wrap: wrap; gap: .1rem 1rem; list-style: none; margin: .3rem 0;
  padding: 0; font-size: .85rem; }}
.legend li {{ overflow-wrap: anywhere; }}
.swatch {{ width: 1.75rem; height: .5rem; vertical-align: middle; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .85rem; }}
dt {{ color: var(--faint); }}
dd {{ margin: 0; overflow-wrap: anywhere; }}
""".strip()

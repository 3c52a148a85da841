"""One self-contained HTML page from templates and plotly figures."""

from robustmdp.app.page.page import page_html as page_html
from robustmdp.app.page.page import render as render
from robustmdp.app.page.page import slug as slug
from robustmdp.app.page.page import write_page as write_page

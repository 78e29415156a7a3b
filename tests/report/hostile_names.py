"""Names of columns and classes that no page should take for anything but text."""

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onload='alert(2)",
    "</style><script>alert(3)</script>",
    "</title></svg><iframe src=javascript:alert(4)>",
    "{{ 7 * 7 }}{% include 'x' %}",
    "\u202egnp.exe\u202c \u2066abc",
    "a\x00b\x07\x1b[31m\r\nc\u2028d",
    "😀 שלום مرحبا",
    "&lt;b&gt; &#x3c;script&#x3e;",
    "x" * 100_000,
    "<!-- --> ]]> <![CDATA[",
]

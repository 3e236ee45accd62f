"""The notation of man pages (mdoc): what both kinds of pages here are written in. It reads no file but debian/changelog."""

import email.utils
import pathlib
import re
import textwrap

SENTENCE = re.compile(r"(?<=[\w)`\"][.?])\s+(?=[A-Z`(])|(?<=\.\))\s+(?=[A-Z`(])")
WORD = re.compile(r"\\\(ga(.+?)\\\(ga|\b(evlock\w*|uv_\w+|event_\w+)\(\)|<(evlock/\w+\.h)>")


def escaped(text):
    for sign, name in (("\\", "\\e"), ("'", "\\(aq"), ("^", "\\(ha"), ("~", "\\(ti"), ("`", "\\(ga"), ("…", "..."), ("ʳ", "*")):
        text = text.replace(sign, name)
    return re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", text)


def plain(text):
    """Text of a header in the notation of roff. A hyphen is one between letters."""
    return re.sub(r"(?<![a-z])-|-(?![a-z])", r"\\-", escaped(re.sub(r"\s+", " ", text).strip()))


def unbroken(line):
    """Names and URLs are not to be hyphenated."""
    return re.sub(r"(?<!\S)(?=\S*(?:_|/|[a-z][A-Z]))", r"\\%", line)


def prose(text):
    """A line for each sentence, with names in bold."""

    def marked(found):
        if found[1]:
            return f"\\fI{found[1]}\\fP" if re.fullmatch(r"\*?\w+", found[1]) else f"\\fB{found[1]}\\fP"
        return f"\\fB{found[2]}\\fP()" if found[2] else f"\\fB<{found[3]}>\\fP"

    lines = [unbroken(WORD.sub(marked, plain(one))) for one in SENTENCE.split(re.sub(r"\s+", " ", text).strip())]
    return "\n".join("\\&" + line if line[:1] in (".", "\\(aq") else line for line in lines if line)


def words(text):
    """Text as the arguments of a macro, of which none is taken for a macro; never none."""
    return re.sub(r"(?<!\S)([A-Z][a-z])(?!\S)", r"\\&\1", plain(text)) or "\\&"


def literal(lines, indent="Bd -literal -offset indent"):
    body = escaped(textwrap.dedent("\n".join(lines)).rstrip()).replace("-", "\\-")
    return f".{indent}\n" + re.sub(r"^(?=\.|$)", r"\\&", body, flags=re.MULTILINE) + "\n.Ed"


def item(head, text):
    return f".It {head}\n{prose(text)}" if text else f".It {head}"


def listed(rows):
    """(head, words) as a list; heads without words stand together with what follows."""
    return ".Bl -tag -width Ds\n" + "\n".join(item(head, words) for head, words in rows) + "\n.El"


def references(names):
    return "\n".join(f".Xr {name}" + (" ," if name != names[-1] else "") for name in names)


def tidy(text):
    """Without a paragraph's mark before a list or a heading, or behind a heading; ends with a newline."""
    text = re.sub(r"\n{2,}", "\n", text)
    text = re.sub(r"^(\.S[hs][^\n]*)\n\.Pp$", r"\1", text, flags=re.MULTILINE)
    return re.sub(r"^\.Pp\n(?=\.(?:Bd|Bl|S[hs]|Pp)\b)", "", text, flags=re.MULTILINE) + "\n"


def date_of(changelog):
    trailer = re.search(r"^ -- .*>  (.*)$", pathlib.Path(changelog).read_text(encoding="utf-8"), re.MULTILINE)
    moment = email.utils.parsedate_to_datetime(trailer[1])
    return f"{moment:%B} {moment.day}, {moment.year}"


def head(name, section, version, changelog):
    """A page's first lines. Its date is that of the newest entry of debian/changelog."""
    return [f".Dd {date_of(changelog)}", f".Dt {name.upper()} {section}", f".Os evlock {version}", ".Sh NAME"]

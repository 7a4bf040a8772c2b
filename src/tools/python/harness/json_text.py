"""The JSON text of a task's result. Needs nothing of the other files."""

import base64
import collections
import collections.abc
import datetime
import decimal
import enum
import json
import math
import os
import re
import uuid

SAFE_INTEGER = 2**53 - 1
LONG_NUMBER = re.compile(r"[0-9]{16}")
SAMPLE_CHARS = 4096
# Texts from this length are looked at as bytes: below, the encoder takes less than that look.
LONG_TEXT_CHARS = 1024
# A dict with more fields is left to the encoder, which is written in C.
FIELDS_MAX = 64
# All of ASCII that stands in JSON as it is.
UNESCAPED = bytes(code for code in range(32, 127) if code not in (34, 92))
to_text = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


class ResultNotJson(TypeError):
    """A result, or a value inside it, that has no JSON form."""


class ResultTooLarge(Exception):
    """A result with more JSON than an answer may have."""


def encode_result(value, bytes_max):
    """The parts of the value's JSON text, in bytes of ASCII."""
    parts = plain_parts(value) or [json_text(value).encode("ascii")]
    length = sum(map(len, parts))
    if length > bytes_max:
        raise ResultTooLarge(
            "the result has %d bytes of JSON, more than %d; write it to a file or a store and return where it is"
            % (length, bytes_max)
        )
    return parts


def plain_parts(value):
    """The JSON of a text or small dict in parts, its long texts as they are. None where that cannot be, or is no gain.

    A long text without an escape is mostly all that a large result has. Copying it takes a fifth of encoding it.
    """
    if type(value) is str:
        plain = plain_bytes(value)
        return None if plain is None else [b'"', plain, b'"']
    if type(value) is not dict or len(value) > FIELDS_MAX or not all(type(key) is str for key in value):
        return None
    parts, before = [], "{"
    for key, item in value.items():
        plain = plain_bytes(item) if type(item) is str else None
        if plain is not None:
            parts += [('%s%s:"' % (before, to_text(key))).encode("ascii"), plain]
            before = '",'
            continue
        try:
            before += json_text({key: item})[1:-1] + ","
        except Exception:
            # The encoder of the whole says where in it that is.
            return None
    return [*parts, (before[:-1] + "}").encode("ascii")] if parts else None


def plain_bytes(text):
    """The bytes of a long text whose characters all stand in JSON as they are; None of any other."""
    if len(text) < LONG_TEXT_CHARS or not text.isascii():
        return None
    plain = text.encode("ascii")
    return None if plain.translate(None, UNESCAPED) else plain


def json_text(value):
    """The value as JSON text in ASCII.

    Most results are JSON already, and the encoder written in C then needs 10 ms per megabyte; walking the value in
    Python takes ten times as long, so it is left to results that need it: other types, NaN, and numbers with so many
    digits that a reader with 64-bit floats may not keep them.
    """
    try:
        text = to_text(value)
        if not has_long_number(text):
            return text
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return to_text(as_json(value, ("result",), set()))
    except RecursionError:
        raise ResultNotJson("the result is nested too deeply to be written as JSON") from None


def has_long_number(text):
    """Whether a number of the JSON text has so many digits in a row. What digits its strings have does not matter.

    Cutting out long strings takes a tenth of the time of searching them, and texts such as hexadecimal digits often
    hold a row of 16. Where there are many short strings, the whole is searched, and may be found to have one.
    """
    if text.count('"', 0, SAMPLE_CHARS) * 16 < SAMPLE_CHARS:
        plain = text.replace("\\\\", "").replace('\\"', "") if "\\" in text else text
        text = '"'.join(plain.split('"')[::2])
    return LONG_NUMBER.search(text) is not None


def as_json(value, path, above):
    """The JSON value that stands for any value. 'path' is (parent path, key), 'above' the ids of what encloses it."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, enum.Enum):
        return as_json(value.value, path, above)
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return integer(value, path)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    for kind, convert in CONVERSIONS:
        if isinstance(value, kind):
            return convert(value)
    if id(value) in above:
        raise ResultNotJson("%s contains itself, which JSON cannot express" % path_text(path))
    above.add(id(value))
    try:
        return container(value, path, above)
    finally:
        above.discard(id(value))


def container(value, path, above):
    if isinstance(value, collections.abc.Mapping):
        return {key_text(key, path): as_json(item, (path, key), above) for key, item in value.items()}
    if isinstance(value, collections.abc.Set):
        value = in_order(value)
    if isinstance(value, LISTS):
        return [as_json(item, (path, index), above) for index, item in enumerate(value)]
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return {name: as_json(getattr(value, name), (path, name), above) for name in value.__dataclass_fields__}
    plain = plain_form(value)
    if plain is not value:
        return as_json(plain, path, above)
    raise ResultNotJson(
        "%s is of type %s, which has no JSON form; make it text, a number, a list or a dict"
        % (path_text(path), type(value).__name__)
    )


def plain_form(value):
    """What numpy arrays and scalars, data frames and models give when asked for plain Python; else the value itself."""
    if isinstance(value, type):
        return value
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return value.to_dict("records")
    for method in ("tolist", "item", "model_dump"):
        if callable(getattr(value, method, None)):
            return getattr(value, method)()
    return value


def integer(value, path):
    """A number while a 64-bit float holds it exactly, else text: a long id must not come out changed."""
    if -SAFE_INTEGER <= value <= SAFE_INTEGER:
        return int(value)
    try:
        return int.__repr__(value)
    except ValueError:
        raise ResultNotJson("%s is an integer with thousands of digits" % path_text(path)) from None


def decimal_number(value):
    if not value.is_finite():
        return None
    if value.as_tuple().exponent >= 0 and abs(value) > SAFE_INTEGER:
        return str(value)
    number = float(value)
    return int(number) if number.is_integer() and abs(number) <= SAFE_INTEGER else number


def time_text(value):
    # pandas' NaT is a datetime that differs from itself.
    return value.isoformat() if value == value else None


def bytes_text(value):
    """UTF-8 text when the bytes are that, else base64."""
    try:
        return bytes(value).decode("utf-8")
    except UnicodeDecodeError:
        return base64.b64encode(bytes(value)).decode("ascii")


def in_order(values):
    """A set as a sorted list where its items compare, so that the same result is written the same way every time."""
    try:
        return sorted(values)
    except TypeError:
        return list(values)


def key_text(key, path):
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, str):
        return str(key)
    if key is None or isinstance(key, (bool, int, float)):
        return to_text(key)
    for kind, convert in CONVERSIONS:
        if isinstance(key, kind):
            return str(convert(key))
    raise ResultNotJson("%s has a key of type %s; keys must be text" % (path_text(path), type(key).__name__))


def path_text(path):
    """('result',) with keys around it, as the author would write it: result['rows'][3]."""
    keys = []
    while len(path) == 2:
        path, key = path
        keys.append("[%r]" % (key,))
    return path[0] + "".join(reversed(keys))


LISTS = (list, tuple, range, collections.deque, collections.abc.ValuesView, collections.UserList)

CONVERSIONS = (
    ((datetime.datetime, datetime.date, datetime.time), time_text),
    (datetime.timedelta, datetime.timedelta.total_seconds),
    (decimal.Decimal, decimal_number),
    (uuid.UUID, str),
    ((bytes, bytearray, memoryview), bytes_text),
    (os.PathLike, lambda value: str(os.fspath(value))),
)

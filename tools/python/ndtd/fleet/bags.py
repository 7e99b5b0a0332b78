"""The recordings that patterns name, with what says whether they have changed: paths and urls of every file system of fsspec."""
import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Optional

from .._arguments import UsageError
from .._extras import MissingPackage, need
from .run_folder import Bag, FleetError, digest

FOLDER_MARK = "metadata.yaml"  # of ROS 2: the folder is the recording
PARTS = (".db3", ".mcap")  # of such a folder
MOST_BRACES = 10_000
SECRET = re.compile(r"(?<=://)[^/@?#]*:[^/@?#]*(?=@)|(?<=[?&])(X-Amz-|sig=|[^?&=]*(?:token|password|secret)[^?&=]*=).*", re.IGNORECASE)
DATES = ("ETag", "etag", "md5", "mtime", "LastModified", "last_modified", "Last-Modified", "updated", "created")


class PatternError(FleetError, UsageError):
    """A pattern that cannot be used, or that names nothing."""


def find(patterns: "Sequence[str]", storage: "Optional[dict[str, Any]]" = None) -> "list[Bag]":
    """Sorted by url, each once. storage: options of fsspec by protocol. PatternError: one names no recording."""
    found: "dict[str, Bag]" = {}
    for pattern in _listed(patterns):
        check_url(pattern, "--bags")
        here = 0
        for one in braces(pattern):
            for bag in _Place(one, storage or {}).bags():
                found[bag.url] = bag
                here += 1
        if not here:
            raise PatternError(f"--bags: {pattern}: there is no such recording")
    return [found[url] for url in sorted(found)]


def check_url(url: str, option: str) -> None:
    """PatternError: it is empty, or holds a secret, which everybody would find in the folder of the run."""
    if not url.strip():
        raise PatternError(f"{option}: is empty")
    if SECRET.search(url):
        raise PatternError(f"{option}: {SECRET.sub('***', url)}: holds a password or signature; secrets come from the environment")


def absolute(pattern: str) -> str:
    """A pattern that means the same in any folder."""
    if pattern.startswith("@"):
        return "@" + os.path.abspath(pattern[1:])
    return pattern if "://" in pattern or "::" in pattern or not pattern else os.path.join(os.getcwd(), pattern)


def prioritised(bags: "Iterable[Bag]", rules: "Sequence[tuple[str, int]]") -> "list[Bag]":
    """Bags with the priority of the last rule (pattern, number) that fits; those of a higher one first, then by url."""
    out = []
    for bag in bags:
        fitting = [number for pattern, number in rules if _fits(bag.url, pattern)]
        out.append(replace(bag, priority=fitting[-1] if fitting else 0))
    return sorted(out, key=lambda one: (-one.priority, one.url))


def _fits(url: str, pattern: str) -> bool:
    return any(fnmatch.fnmatchcase(url, one) or fnmatch.fnmatchcase(url, f"*/{one.lstrip('./')}") for one in braces(pattern))


def braces(pattern: str) -> "list[str]":
    """"a{b,c}" as "ab", "ac", as a shell does."""
    out, begin = [pattern], 0
    while begin < len(out):
        found = re.search(r"\{([^{}]*,[^{}]*)\}", out[begin])
        if found is None:
            begin += 1
            continue
        head, tail = out[begin][:found.start()], out[begin][found.end():]
        out[begin:begin + 1] = [head + choice + tail for choice in found.group(1).split(",")]
        if len(out) > MOST_BRACES:
            raise PatternError(f"--bags: {pattern}: more than {MOST_BRACES} patterns")
    return list(dict.fromkeys(out))


def _listed(patterns: "Iterable[str]") -> "Iterator[str]":
    """@FILE stands for its lines."""
    for pattern in patterns:
        if not pattern.startswith("@"):
            yield pattern
            continue
        found = 0
        try:
            with open(pattern[1:], encoding="utf-8") as stream:
                for line in stream:
                    if line.strip() and not line.startswith("#"):
                        found += 1
                        yield line.strip()
        except (OSError, UnicodeDecodeError) as error:
            raise PatternError(f"--bags: {pattern[1:]}: {getattr(error, 'strerror', None) or 'is not text'}") from None
        if not found:
            raise PatternError(f"--bags: {pattern[1:]}: names no recording")


class _Place:
    """A pattern on its file system."""

    def __init__(self, pattern: str, storage: "dict[str, Any]"):
        fsspec = need("fsspec", "fleet")
        self.pattern = pattern
        protocol = fsspec.utils.get_protocol(pattern)
        self.is_local = protocol in ("file", "local")
        try:
            self.files, self.path = fsspec.core.url_to_fs(pattern, **storage.get(protocol, {}))
        except ImportError as error:
            raise MissingPackage(f"--bags: {pattern}: {error}") from None
        except Exception as error:  # of a file system of fsspec: anything
            raise PatternError(f"--bags: {pattern}: {_text(error)}") from None
        self._is_recording: "dict[str, bool]" = {}

    def bags(self) -> "Iterator[Bag]":
        """Files, and folders that are recordings."""
        try:
            for path, info in self._matches():
                if info["type"] == "directory":
                    if self._is_folder_recording(path) or path == self.path:
                        yield self._folder(path)
                elif path.endswith(PARTS) and self._is_folder_recording(path.rpartition("/")[0]):
                    yield self._folder(path.rpartition("/")[0])
                else:
                    yield Bag(self._url(path), int(info.get("size") or 0), fingerprint(info))
        except FileNotFoundError as error:
            why = error.__cause__  # HTTP: of any failure
            if why is not None and not isinstance(why, FileNotFoundError) and getattr(why, "status", 0) not in (404, 410):
                raise FleetError(f"--bags: {self.pattern}: {_text(why)}") from None
        except FleetError:
            raise
        except ImportError as error:
            raise MissingPackage(f"--bags: {self.pattern}: {error}") from None
        except Exception as error:  # of a file system of fsspec: anything
            raise FleetError(f"--bags: {self.pattern}: {_text(error)}") from None

    def _matches(self) -> "Iterator[tuple[str, dict[str, Any]]]":
        if not any(letter in self.path for letter in "*?["):
            yield self.path.rstrip("/"), self.files.info(self.path.rstrip("/"))
            return
        for path, info in self.files.glob(self.path, detail=True).items():
            if not _says_content(info):
                info = self.files.info(path)  # HTTP: a listing has names alone
            yield path.rstrip("/"), info

    def _is_folder_recording(self, path: str) -> bool:
        if path not in self._is_recording:
            self._is_recording[path] = bool(self.files.exists(f"{path}/{FOLDER_MARK}"))
        return self._is_recording[path]

    def _folder(self, path: str) -> Bag:
        files = self.files.find(path, detail=True)
        if not files:
            raise PatternError(f"--bags: {self._url(path)}: the folder is empty")
        return Bag(self._url(path), sum(int(info.get("size") or 0) for info in files.values()), folder_fingerprint(files, path))

    def _url(self, path: str) -> str:
        """Url of a path. A local name that is not UTF-8 becomes one that can be written down; its replay tells that there is no such file."""
        url = os.path.abspath(path) if self.is_local else str(self.files.unstrip_protocol(path))
        return url.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _says_content(info: "dict[str, Any]") -> bool:
    return info.get("type") == "directory" or any(info.get(name) for name in DATES)


def fingerprint(info: "dict[str, Any]") -> str:
    """Fingerprint of a file, by what its file system tells: size, and the first date or hash."""
    told = next((str(info[name]) for name in DATES if info.get(name)), "")
    return f"{info.get('size') or 0} {told}".replace('"', "")


def folder_fingerprint(files: "dict[str, dict[str, Any]]", path: str) -> str:
    """Fingerprint of all files below a folder."""
    return digest(*(text for name in sorted(files) for text in (name[len(path):], fingerprint(files[name]))))


def _text(error: BaseException) -> str:
    return " ".join((getattr(error, "strerror", None) or str(error)).split())[:200] or type(error).__name__

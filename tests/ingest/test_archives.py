"""Files inside archives come out as they went in; an archive that escapes, explodes or is broken leaves nothing."""

import bz2
import gzip
import io
import lzma
import random
import stat
import struct
import tarfile
import zipfile

import pytest
import zstandard

from trackway.errors import FileRefused
from trackway.ingest import archives
from trackway.ingest.archives import Member, is_archive, unpacked
from trackway.ingest.original import Original
from trackway.ingest.source import Trouble

LINES = b'{"a": 1}\n' * 100
NOISE = random.Random(1)
PACKERS = {
    "tar": lambda body: body,
    "tar.gz": gzip.compress,
    "tar.bz2": bz2.compress,
    "tar.xz": lzma.compress,
    "tar.zst": zstandard.ZstdCompressor().compress,
}
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def tar_of(*members, form=tarfile.PAX_FORMAT):
    """A tar archive of names with bytes, or of ``TarInfo``s."""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w", format=form) as archive:
        for each in members:
            info, content = (each, b"") if isinstance(each, tarfile.TarInfo) else (tarfile.TarInfo(each[0]), each[1])
            info.size, info.mtime = len(content), 1_700_000_000
            archive.addfile(info, io.BytesIO(content))
    return body.getvalue()


def zip_of(*members, method=zipfile.ZIP_DEFLATED):
    """A zip archive of names, or of ``ZipInfo``s, with bytes."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return body.getvalue()


def linked(name, target, kind=tarfile.SYMTYPE):
    """A member of a tar archive that is a link, or a device."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.fixture
def unpack(tmp_path):
    """``unpack(bytes)``: the members of an archive of these bytes, and its troubles."""

    def act(body, name="sessions.bin"):
        path = tmp_path / name
        path.write_bytes(body)
        return list(unpacked(path, tmp_path / "into", name))

    return act


def left_in(folder):
    """The names of what is in a folder."""
    return [each.name for each in folder.iterdir()]


def names(found):
    """The names of what came out."""
    return [each.name for each in found if isinstance(each, Member)]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", PACKERS)
def test_tar_members_come_out_as_they_went_in(unpack, kind, form):
    """Every kind of tar gives its files: bytes, names, times; readable by their owner only."""
    members = [("projects/a/one.jsonl", LINES), ("two.json", b"{}"), ("empty.jsonl", b""), ("deep/" * 18 + "x", b"x")]
    found = unpack(PACKERS[kind](tar_of(*members, form=FORMATS[form])))
    assert names(found) == [f"sessions.bin!/{name}" for name, _ in members]
    assert [each.path.read_bytes() for each in found] == [content for _, content in members]
    assert {stat.S_IMODE(each.path.stat().st_mode) for each in found} == {0o600}
    assert {each.modified for each in found} == {each.path.stat().st_mtime_ns for each in found}
    assert found[0].modified == 1_700_000_000 * 10**9


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_zip_members_come_out_as_they_went_in(unpack, method):
    """So does a zip; a name may have folders, spaces and any script."""
    members = [("projects/a b/einß.jsonl", LINES), ("会话.json", b"{}"), ("empty/", b""), ("empty.jsonl", b"")]
    found = unpack(zip_of(*members, method=method))
    assert names(found) == [f"sessions.bin!/{name}" for name, _ in members if not name.endswith("/")]
    assert [each.path.read_bytes() for each in found] == [LINES, b"{}", b""]
    assert {stat.S_IMODE(each.path.stat().st_mode) for each in found} == {0o600}


def test_long_names_and_times_with_fractions(unpack):
    """A name longer than a header has room for comes whole, from GNU's tar and from POSIX's."""
    name = "/".join(["folder" * 10] * 5) + "/file.jsonl"
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        assert names(unpack(tar_of((name, LINES), form=form))) == [f"sessions.bin!/{name}"]
    info = tarfile.TarInfo("a")
    info.pax_headers = {"mtime": "1700000000.25", "comment": "=x= y"}
    assert unpack(tar_of(info))[0].modified == 1_700_000_000_250_000_000


def test_files_keep_their_places_and_are_there_together(unpack):
    """What lies beside a file in the archive lies beside it outside, before the first one is read; above is nothing."""
    found = unpack(zip_of(("s/one.jsonl", LINES), ("s/one/subagents/agent-1.jsonl", LINES)))
    original = Original(found[0].path, found[0].name)
    beside = original.near(0, "one", "subagents", "agent-1.jsonl")
    assert beside is not None
    assert beside.name == "sessions.bin!/s/one/subagents/agent-1.jsonl"
    assert left_in(found[0].path.parents[2]) == ["_"]


def test_windows_separators_are_separators(unpack):
    """A zip made with backslashes gives the same files."""
    assert names(unpack(zip_of((r"a\b.jsonl", LINES)))) == ["sessions.bin!/a/b.jsonl"]


ESCAPES = {
    "absolute": "/etc/cron.d/x",
    "up": "../x",
    "up later": "a/../../x",
    "windows up": r"a\..\..\x",
    "drive": r"C:\x",
    "drive relative": "c:x",
    "share": r"\\host\x",
}


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("name", ESCAPES.values(), ids=ESCAPES)
def test_names_that_lead_elsewhere_are_refused(unpack, tmp_path, name, kind):
    """A name that leads anywhere but down refuses the whole archive, and nothing of it is left."""
    make = zip_of if kind == "zip" else tar_of
    with pytest.raises(FileRefused, match=r"absolute path|leads out"):
        unpack(make(("good.jsonl", LINES), (name, LINES)))
    assert sorted(left_in(tmp_path)) == ["into", "sessions.bin"]
    assert left_in(tmp_path / "into") == []


BAD_TARS = {
    "through a symbolic link": [linked("a", "/etc"), ("a/b", LINES)],
    "hard link out": [linked("a", "../../x", tarfile.LNKTYPE)],
    "absolute hard link": [linked("a", "/etc/passwd", tarfile.LNKTYPE)],
    "device": [linked("a", "", tarfile.CHRTYPE)],
    "pipe": [linked("a", "", tarfile.FIFOTYPE)],
    "twice": [("a", LINES), ("a", LINES)],
    "twice in other words": [("a/b", LINES), ("a/./b", LINES)],
    "file and link": [("a", LINES), linked("a", "b")],
    "file and folder": [("a", LINES), ("a/b", LINES)],
    "folder and file": [("a/b", LINES), ("a", LINES)],
    "no name": [("./.", LINES)],
}


@pytest.mark.parametrize("members", BAD_TARS.values(), ids=BAD_TARS)
def test_members_that_are_not_files(unpack, tmp_path, members):
    """Ways through links, devices, pipes and names that are taken refuse the archive."""
    with pytest.raises(FileRefused):
        unpack(gzip.compress(tar_of(("good.jsonl", LINES), *members)))
    assert left_in(tmp_path / "into") == []


def test_links_are_left_out_and_told(unpack):
    """A link is neither made nor followed; the files beside it are read."""
    members = [("a.jsonl", LINES), linked("b", "/etc/passwd"), linked("c.jsonl", "a.jsonl", tarfile.LNKTYPE)]
    found = unpack(tar_of(*members))
    assert names(found) == ["sessions.bin!/a.jsonl"]
    told = [each.reason for each in found if isinstance(each, Trouble)]
    assert told == [
        "sessions.bin!/b: a symbolic link, which is left out",
        "sessions.bin!/c.jsonl: another name of 'a.jsonl', which is left out",
    ]
    assert [each.name for each in found[0].path.parent.iterdir()] == ["a.jsonl"]


def test_links_and_pipes_in_zips(unpack):
    """A zip says in a file's mode that it is a link, or a pipe."""
    link, pipe = zipfile.ZipInfo("link"), zipfile.ZipInfo("pipe")
    link.external_attr, pipe.external_attr = (stat.S_IFLNK | 0o777) << 16, (stat.S_IFIFO | 0o600) << 16
    found = unpack(zip_of(("a", LINES), (link, b"/etc/passwd")))
    assert names(found) == ["sessions.bin!/a"]
    assert found[1].reason == "sessions.bin!/link: a symbolic link, which is left out"
    with pytest.raises(FileRefused, match="device or a pipe"):
        unpack(zip_of((pipe, b"")))
    with pytest.raises(FileRefused, match="goes through a link"):
        unpack(zip_of((link, b"/etc"), ("link/passwd", LINES)))


def test_sparse_members_are_left_out_and_told(unpack):
    """A sparse file can say that it is as large as it likes; it is not written."""
    info = tarfile.TarInfo("a")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 60)}
    found = unpack(tar_of(info, ("b", LINES)))
    assert names(found) == ["sessions.bin!/b"]
    assert found[1].reason.endswith("a sparse file, which is left out")


def test_encrypted_members_are_refused(unpack):
    """What cannot be read without a password is refused, by name."""
    body = bytearray(zip_of(("secret.jsonl", LINES)))
    body[6] |= 1
    body[body.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(FileRefused, match=r"'secret\.jsonl' is encrypted"):
        unpack(bytes(body))


def test_unknown_compression_is_refused(unpack):
    """A member compressed by a method that is not read refuses the archive."""
    with pytest.raises(FileRefused, match="method 14"):
        unpack(zip_of(("a.jsonl", LINES), method=zipfile.ZIP_LZMA))


@pytest.mark.parametrize("kind", ["zip", *PACKERS])
def test_cut_off_archives_are_refused_wherever_they_end(unpack, tmp_path, kind):
    """Every beginning of an archive that is not all of it is refused, and leaves nothing."""
    members = [("a.jsonl", NOISE.randbytes(700)), ("b.jsonl", NOISE.randbytes(700))]
    body = zip_of(*members) if kind == "zip" else tar_of(*members)
    body = body[: 512 * 6 + 512] if kind != "zip" else body  # without the blocks that only fill up
    body = body if kind == "zip" else PACKERS[kind](body)
    assert len(unpack(body)) == 2
    for length in range(520, len(body) - 1, 97):
        if kind == "tar.zst" and length > len(body) - 60:
            continue  # the last bytes may be those of the end alone
        with pytest.raises(FileRefused):
            unpack(body[:length])
    assert len(left_in(tmp_path / "into")) == 1  # that of the whole one


def test_damaged_archives_are_refused_or_read(unpack):
    """A flipped byte anywhere: refused, or read where nothing depends on it; never anything else."""
    members = [("a.jsonl", LINES), ("b.jsonl", LINES)]
    for body in (zip_of(*members), gzip.compress(tar_of(*members), mtime=0), tar_of(*members)):
        for at in range(0, min(len(body), 4000), 7):
            broken = bytearray(body)
            broken[at] ^= 0x41
            try:
                unpack(bytes(broken))
            except FileRefused:
                continue


def test_too_much_is_refused(unpack, tmp_path, monkeypatch):
    """What grows out of all proportion is refused: by what it says, by what comes, in one file or in many."""
    monkeypatch.setattr(archives, "SMALL", 1 << 20)
    large = bytes(3 << 20)
    with pytest.raises(FileRefused, match="become more than"):
        unpack(zip_of(("a", large)))
    for kind in ("tar.gz", "tar.bz2", "tar.xz", "tar.zst"):
        with pytest.raises(FileRefused, match="become more than"):
            unpack(PACKERS[kind](tar_of(*((f"{i}", large[: 1 << 19]) for i in range(6)))))
    lying = bytearray(zip_of(("a", large)))
    at = lying.index(b"PK\x01\x02")
    lying[at + 24 : at + 28] = struct.pack("<I", 100)
    with pytest.raises(FileRefused):
        unpack(bytes(lying))
    assert left_in(tmp_path / "into") == []
    assert len(unpack(zip_of(("a", NOISE.randbytes(3 << 20))))) == 1


def test_too_much_between_the_members_is_refused(unpack, monkeypatch):
    """What is read and never written counts too: names and times, or a volume's label."""
    monkeypatch.setattr(archives, "SMALL", 1 << 20)
    info = tarfile.TarInfo("label")
    info.type, info.size = b"V", 100 << 20
    with pytest.raises(FileRefused, match="become more than"):
        unpack(gzip.compress(info.tobuf() + bytes((100 << 20) + 1024)))
    info.type = tarfile.XHDTYPE
    with pytest.raises(FileRefused, match="a header brings"):
        unpack(gzip.compress(info.tobuf() + bytes((100 << 20) + 1024)))


def test_too_many_members_are_refused(unpack, monkeypatch):
    """So are too many: of a zip by its list, before any is unpacked; of a tar as they come; folders count."""
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    many = entry * (archives.MEMBERS + 1)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 0xFFFE, 0xFFFE, len(many), 4, 0)
    with pytest.raises(FileRefused, match="more than 200,000 members"):
        unpack(b"PK\x03\x04" + many + end)
    monkeypatch.setattr(archives, "MEMBERS", 50)
    with pytest.raises(FileRefused, match="more than 50 members"):
        unpack(tar_of(*((str(i), b"") for i in range(51))))
    with pytest.raises(FileRefused, match="more than 50 members"):
        unpack(tar_of(("a/" * 60 + "b", b"")))


def test_archives_in_archives(unpack):
    """An archive in an archive is unpacked in its place, down to the second level."""
    inner = gzip.compress(tar_of(("x.jsonl", LINES)))
    middle = zip_of(("inner.tgz", inner), ("y.jsonl", LINES))
    found = unpack(zip_of(("middle", middle), ("z.jsonl", LINES)))
    assert names(found) == [
        "sessions.bin!/middle!/inner.tgz!/x.jsonl",
        "sessions.bin!/middle!/y.jsonl",
        "sessions.bin!/z.jsonl",
    ]
    found = unpack(zip_of(("outer.zip", zip_of(("middle", middle))), ("z.jsonl", LINES)))
    assert names(found) == ["sessions.bin!/outer.zip!/middle!/y.jsonl", "sessions.bin!/z.jsonl"]
    told = "sessions.bin!/outer.zip!/middle!/inner.tgz: an archive 3 levels down is not unpacked"
    assert [each.reason for each in found if isinstance(each, Trouble)] == [told]


def test_a_bad_archive_in_a_good_one_does_not_stop_the_others(unpack, tmp_path):
    """It is refused by itself, told, and leaves nothing."""
    bad = zip_of(("good.jsonl", LINES), ("../x", LINES))
    found = unpack(zip_of(("bad.zip", bad), ("z.jsonl", LINES)))
    assert names(found) == ["sessions.bin!/z.jsonl"]
    assert found[1].reason == "sessions.bin!/bad.zip: '../x' leads out of it"
    assert [each.name for each in (tmp_path / "into").rglob("*") if each.is_file()] == ["z.jsonl"]


def test_archives_in_archives_have_one_allowance(unpack, tmp_path, monkeypatch):
    """Many small bombs in one archive are one large one."""
    monkeypatch.setattr(archives, "SMALL", 1 << 20)
    inner = zip_of(("a", bytes(300_000)))
    with pytest.raises(FileRefused, match="become more than"):
        unpack(zip_of(*((f"{i}.zip", inner) for i in range(5))))
    assert left_in(tmp_path / "into") == []


def head_of(tmp_path, body):
    """The head of a file of these bytes."""
    path = tmp_path / "x"
    path.write_bytes(body)
    return Original(path).head()


def test_what_an_archive_is(tmp_path):
    """It is told by content; a zip that is a format of its own, or a single compressed file, is none."""
    yes = [zip_of(("a", LINES)), *(pack(tar_of(("a", LINES))) for pack in PACKERS.values())]
    yes += [bz2.compress(tar_of(("a", NOISE.randbytes(900_000))))]
    assert all(is_archive(head_of(tmp_path, each)) for each in yes)
    no = [LINES, b"", b"PK", b"BZh9", *(pack(LINES) for pack in PACKERS.values()), bytes(2048)]
    no += [zip_of(("header.json", b"{}"), ("samples/1_epoch_1.json", b"{}"))]
    no += [zip_of(("_journal/start.json", b"{}"), ("samples/1_epoch_1.json", b"{}"))]
    no += [gzip.compress(zip_of(("a", LINES)))]
    assert not any(is_archive(head_of(tmp_path, each)) for each in no)

"""Redaction at capture: a secret reaches no file of the home, equal secrets stay equal, and the key lifts them."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trackway
from trackway.errors import BadSetting
from trackway.recording.key import tokens_to_hide, tokens_to_lift
from trackway.recording.lifting import lift, lift_value
from trackway.recording.redact import Redactor, Tally
from trackway.recording.rules import literal, rules_of
from trackway.recording.secrets import KNOWN
from trackway.recording.settings import home_at
from trackway.recording.tokens import TOKEN, Tokens
from trackway.schema.events import AssistantToolCall, Unknown

SECRET = "sk-ant-api03-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nabc+/=\n-----END RSA PRIVATE KEY-----"
TOKENS = Tokens(b"k" * 32)

any_text = st.text(st.characters(), min_size=1, max_size=60)


def everywhere(home: Path) -> bytes:
    """Every byte of every file in the home."""
    return b"".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())


def say_it_everywhere(episode: trackway.Episode, secret: str) -> None:
    """The secret in every field of every kind that can carry one."""
    episode.user(f"my key is {secret}, keep it")
    request = episode.model_call(
        model="m", messages=[{"role": "user", "content": f"key {secret}"}], system=f"use {secret}",
        tools=[{"name": "x", "description": secret}], parameters={"headers": {"x-api-key": secret}},
    )  # fmt: skip
    request.done(usage={"note": secret}, error=f"401 for {secret}", response={"echo": [secret]})
    episode.thinking(secret, state={"signature": secret})
    call = episode.tool_call("bash", {"cmd": f"curl -H 'x: {secret}'", secret: 1})
    episode.file_change("/app/.env", before=f"KEY=\n{secret}", after=b"\xff\x00" + secret.encode())
    episode.tool_result(call, f"ok {secret}", returned={"deep": [{"er": secret}]}, is_error=True)
    broken = episode.tool_call("bash", '{"cmd": "' + secret)
    episode.tool_result(broken, "x" * 2_000_000 + secret)
    episode.tool_call("again", f'{{"a": "{secret}", "a": 1}}')
    episode.text(f"done with {secret}")
    episode.note("decision", {"why": secret}, detail=secret)
    episode.reflection(secret, tried=secret)
    episode.security_flag("leak", evidence=secret, where=secret)
    episode.context("inject", system_prompt=secret, text=secret, detail=[secret])
    episode.test_run(passed=1, command=f"KEY={secret} pytest")
    episode.agent("sub").text(secret)
    episode.label(comment=secret, tag=secret)
    episode.end("failure", reason=secret, error=secret)


@pytest.mark.parametrize("ack", ["process", "store"])
def test_a_planted_secret_is_nowhere_in_the_home(home: Path, ack: str) -> None:
    """In no event, no file content, no journal and no store page is a byte of it, before sealing and after."""
    recorder = trackway.Recorder(ack=ack)
    episode = recorder.start(
        f"task {SECRET}", redact=True, metadata={SECRET: SECRET}, tags=[SECRET], system_prompt=SECRET, variant=SECRET,
        agent=SECRET,
    )  # fmt: skip
    say_it_everywhere(episode, SECRET)

    assert SECRET.encode() not in everywhere(home)
    recorder.close()
    assert SECRET.encode() not in everywhere(home)
    for event in trackway.open_store().events("last"):
        assert SECRET not in repr(event)


def test_the_twin_compares_equal(home: Path) -> None:
    """Two episodes with the same secret, both redacted, have the same texts: equal secrets are equal tokens."""
    for _ in range(2):
        with trackway.record("t", redact=True) as episode:
            say_it_everywhere(episode, SECRET)
    store = trackway.open_store()
    twins = [list(store.events(each.id)) for each in store.episodes()]

    texts = [[TOKEN.findall(repr(event)) for event in events] for events in twins]

    assert texts[0] == texts[1]
    assert any(texts[0])


def test_an_event_says_what_was_removed() -> None:
    """By which rule, how often; an event without secrets says nothing."""
    with trackway.record("t", redact={"customer": re.compile(r"CUST-\d+")}) as episode:
        episode.user("CUST-1 met CUST-22")
        episode.text("fine")
    said = {event.kind: event.redacted for event in trackway.open_store().events("last")}

    assert said["user"] == {"customer": 2}
    assert said["assistant_text"] is None


def test_the_key_holder_lifts_it(home: Path) -> None:
    """With the key of the home every event is what it would have been without redaction."""
    texts = []
    for redact in (False, [SECRET, PEM, 'quo"te\\é']):
        with trackway.record("t", redact=redact) as episode:
            episode.user(f"{SECRET} and {PEM}")
            call = episode.tool_call("bash", {"cmd": f"echo {PEM}", "n": 1.5, "quote": 'a quo"te\\é b'})
            episode.tool_result(call, PEM, returned={SECRET: [PEM]})
            episode.model_call(messages=[{"role": "user", "content": SECRET}])
        tokens = tokens_to_lift(home_at(None)) if redact else TOKENS
        events = [lift(event, tokens) for event in trackway.open_store().events("last")]
        texts.append([
            (event.kind, getattr(event, "content", None), getattr(event, "returned", None),
             getattr(event, "messages", None), json.loads(getattr(event, "args", b"1")))
            for event in events if event.kind != "episode_start"
        ])  # fmt: skip

    assert texts[0] == texts[1]


def test_without_the_key_nothing_is_lifted() -> None:
    """Another key, a damaged token and a made-up one leave the text as it is."""
    token = TOKENS.hide(SECRET, "x")

    assert Tokens(b"o" * 32).lift(token) == token
    assert TOKENS.lift(token.replace(":x:", ":y:")) == token.replace(":x:", ":y:")
    assert TOKENS.lift("[redacted:x:AAAAAAAAAAAAAAAAAAAAAAAA]") == "[redacted:x:AAAAAAAAAAAAAAAAAAAAAAAA]"


@given(any_text, any_text, any_text)
def test_any_secret_is_hidden_and_lifted(before: str, secret: str, after: str) -> None:
    """Whatever the secret and its surroundings: hidden it is a token, lifted it is itself."""
    redactor = Redactor(literal("s", secret), TOKENS)
    text = before + secret + after

    clean = redactor.text(text, Tally())

    assert TOKENS.lift(clean) == text
    assert secret not in TOKEN.sub("", clean) or secret in "redacted[]:s"


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=9) | st.integers() | st.floats(allow_nan=False)), any_text)
def test_arguments_stay_what_they_are_but_for_the_secret(args: dict[str, object], secret: str) -> None:
    """Arguments are the same JSON with the secret hidden, and lifted they are equal."""
    whole = {**args, "key": f"a {secret} b"}
    tally = Tally()
    clean = Redactor(literal("s", secret), TOKENS).args(json.dumps(whole).encode(), tally)

    assert tally.counts["s"] >= 1
    event = AssistantToolCall(name="x", args=clean, call_id="c", redacted={"s": 1})
    assert json.loads(lift(event, TOKENS).args) == whole


def test_the_models_own_spelling_is_kept() -> None:
    """Only the secret is replaced: numbers, spaces and the order of names stay as the model wrote them."""
    args = b'{ "n": 1.10,  "key": "sk-ant-api03-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA" }'

    clean = Redactor(rules_of(True), TOKENS).args(args, Tally())

    assert re.fullmatch(rb'\{ "n": 1\.10,  "key": "\[redacted:anthropic:[\w-]+\]" \}', clean)


@pytest.mark.parametrize(("name", "text"), [
    ("anthropic", SECRET), ("openai", "sk-proj-abcdefghijklmnopqrstuvwxyz0123"), ("aws-key", "AKIAIOSFODNN7EXAMPLE"),
    ("aws-secret", "aws_secret_access_key = wJalrXUtnFEMIaK7MDENGabPxRfiCYEXAMPLEKEY"),
    ("github", "ghp_" + "a1B2" * 9), ("gitlab", "glpat-abcdefghij0123456789"), ("google", "AIza" + "Sy0_-" * 7),
    ("slack", "xoxb-123456789012-abcdef"), ("stripe", "sk_live_" + "a1" * 12), ("huggingface", "hf_" + "aB3" * 11),
    ("npm", "npm_" + "a1B2" * 9), ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w"),
    ("private-key", PEM), ("private-key", PEM.replace("\n", "\\n")), ("url-password", "postgres://me:hunter2@db/x"),
    ("bearer", "Authorization: Bearer abcdef0123456789ABCDEF"), ("basic-auth", "Authorization: Basic dXNlcjpwYXNz"),
])  # fmt: skip
def test_known_secrets_are_found(name: str, text: str) -> None:
    """The keys of well-known services, alone and inside a sentence."""
    for whole in (text, f"see {text}, please"):
        tally = Tally()
        assert text not in Redactor(rules_of(True), TOKENS).text(whole, tally)
        assert tally.counts == {name: 1}


@pytest.mark.parametrize("text", [
    "basic understanding of internationalization", "risk-management-and-compliance-team", "a task-oriented desk-lamp",
    "https://example.com:8080/path@x", "the bearer of bad news", "gh issue list", "eyJ", "class SG.x", "me@example.com",
])  # fmt: skip
def test_ordinary_text_is_left_alone(text: str) -> None:
    """Nothing that only looks a little like a secret is touched."""
    assert Redactor(rules_of(True), TOKENS).text(text, Tally()) == text


def test_rules_are_texts_patterns_functions_and_mappings() -> None:
    """A text is itself and no pattern; a function names secrets or gives the text back as it may be kept."""

    def names(text: str) -> list[str]:
        return re.findall(r"Mr \w+", text)

    def shouting(text: str) -> str:
        return text.replace("LOUD", "****")

    redactor = Redactor(rules_of(["a+b", re.compile("z{3}"), names, shouting, {"pin": "1234"}]), TOKENS)
    tally = Tally()

    clean = redactor.text("a+b aab zzz Mr Jones LOUD 1234", tally)

    assert TOKENS.lift(clean) == "a+b aab zzz Mr Jones **** 1234"
    assert " aab " in clean
    assert tally.counts == {"rule": 2, "names": 1, "shouting": 1, "pin": 1}


def test_a_rule_that_fails_hides_the_whole_text(home: Path) -> None:
    """A broken function is no reason to write in the clear, nor to stop the agent."""

    def broken(_text: str) -> list[str]:
        raise RuntimeError("no")

    with trackway.record("t", redact=broken) as episode:
        episode.user("something private")
    assert b"something private" not in everywhere(home)
    (event,) = [each for each in trackway.open_store().events("last") if each.kind == "user"]
    assert event.redacted == {"failed": 1}
    assert lift(event, tokens_to_lift(home_at(None))).content == "something private"


@pytest.mark.parametrize("redact", [b"bytes", 3, object()])
def test_what_is_no_rule_is_refused(redact: object) -> None:
    """Misuse of a privacy setting raises at once."""
    with pytest.raises(BadSetting):
        trackway.record("t", redact=redact)


def test_a_context_is_hidden_once(home: Path) -> None:
    """The history of a conversation is hidden as it is new, and rebuilt with the same tokens in every call."""
    from trackway.read.context import contexts

    messages = []
    with trackway.record("t", redact=True) as episode:
        for turn in range(4):
            messages.append({"role": "user", "content": f"{turn}: {SECRET}"})
            episode.model_call(messages=messages)
    seen = list(contexts(trackway.open_store().events("last")))

    assert [len(each.messages) for each in seen] == [1, 2, 3, 4]
    assert [len(each.call.messages) for each in seen] == [1, 1, 1, 1]
    assert SECRET.encode() not in everywhere(home)


def test_two_processes_make_one_key(home: Path) -> None:
    """The key is made once; whoever comes later reads it. It is its owner's alone."""
    first = tokens_to_hide(home_at(None), lambda n: b"a" * n)
    second = tokens_to_hide(home_at(None), lambda n: b"b" * n)

    assert first.hide("x", "r") == second.hide("x", "r")
    assert (home / "redact.key").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in home.iterdir()] == ["redact.key"]


def test_a_damaged_key_is_refused(home: Path) -> None:
    """It is never replaced: what it hid could not be lifted any more."""
    home.mkdir()
    (home / "redact.key").write_text("nonsense")

    with pytest.raises(BadSetting, match="no key"):
        trackway.record("t", redact=True)


def test_a_home_that_takes_no_key_still_hides(home: Path, monkeypatch, capsys) -> None:
    """Hiding matters more than lifting: a key for this process only, and that is said."""
    from trackway.recording import key

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(key.system, "write_file", full)
    token = tokens_to_hide(home_at(None), lambda n: b"a" * n).hide("x", "r")

    assert TOKEN.fullmatch(token)
    assert "cannot be lifted" in capsys.readouterr().err


# --- what an adversarial review found -------------------------------------------------------------------------------


def test_rules_hold_when_only_the_id_is_kept(home: Path) -> None:
    """Steps and labels by id are redacted by the rules the episode was begun with, after its end too."""
    with trackway.Recorder() as recorder:
        name = recorder.start("t", redact=["swordfish"]).id
        recorder.log_step(name, trackway.ExecutionStep("t", "say swordfish", 1, observation="swordfish"))
        recorder.resume(name).end("success")
        recorder.label(name, comment="swordfish")

    assert b"swordfish" not in everywhere(home)


def test_another_process_goes_on_hiding_known_secrets(home: Path) -> None:
    """The header says that secrets are hidden: whoever goes on with the episode hides the known ones at least."""
    with trackway.Recorder() as first:
        name = first.start("t", redact=["swordfish"]).id
    with trackway.Recorder() as second:
        second.log_step(name, trackway.ExecutionStep("t", SECRET, 1))
        second.label(name, comment=SECRET)

    assert SECRET.encode() not in everywhere(home)


KEY = "sk-proj-" + "Ab1" * 14


@pytest.mark.parametrize("text", [
    json.dumps({"stdout": f"the key:\n{KEY}"}), json.dumps({"a": json.dumps({"b": f"x\t{KEY}"})}),
    '{"content":"key\\n' + KEY, json.dumps(f"\u2028{KEY}"),
])  # fmt: skip
def test_an_escape_ends_a_word(text: str) -> None:
    """In JSON a line break is a letter with a backslash before it: the key after it is still found."""
    assert KEY not in Redactor(rules_of(True), TOKENS).text(text, Tally())


@pytest.mark.parametrize("made", [
    lambda e: e.tool_result(e.tool_call("t"), {"password": "swordfish"}),
    lambda e: e.user({"Password": "swordfish", "n": [{"password": ["swordfish"]}]}),
    lambda e: e.model_call(messages=[{"function": {"arguments": '{"password": "swordfish"}'}}]),
    lambda e: e.tool_call("t", '{"password":"swordfish","password":"B"}'),
    lambda e: e.tool_call("t", '{"password": "swordfish'),
    lambda e: e.text("said {'password': 'swordfish two'} and left"),
    lambda e: e.text('logged {"x": "{\\"password\\": \\"swordfish\\"}"'),
])  # fmt: skip
def test_what_stands_under_a_name_is_hidden_in_text_too(home: Path, tmp_path: Path, monkeypatch, made) -> None:
    """In values, in their JSON, in JSON inside strings, twice under one name, cut off, and as Python writes it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trackway.toml").write_text("[redact]\nfields = ['password']\n")
    with trackway.record("t") as episode:
        made(episode)

    assert b"swordfish" not in everywhere(home)


def test_a_title_is_hidden_before_it_is_cut(home: Path) -> None:
    """Half a secret is found by no rule, so none is made."""
    trace = trackway.FullTrace("t1")
    trace.push_user("x" * 100 + " " + SECRET + " and more")
    with trackway.Recorder() as recorder:
        recorder.add(trace, redact=True)

    assert SECRET[:18].encode() not in everywhere(home)


@pytest.mark.parametrize("find", [
    lambda text: re.finditer("swordfish", text), lambda text: re.findall("(sword)(fish)", text),
    lambda text: [b"swordfish"], lambda text: [object()], lambda text: 3,
])  # fmt: skip
def test_a_function_may_answer_in_any_way(find) -> None:
    """Matches, groups and bytes are secrets; what is none of these hides the whole text."""
    clean = Redactor(rules_of(find), TOKENS).text("a swordfish b", Tally())

    assert "swordfish" not in clean
    assert TOKENS.lift(clean) == "a swordfish b"


def test_a_pattern_of_bytes_is_refused() -> None:
    """It could match no text."""
    with pytest.raises(BadSetting, match="bytes"):
        rules_of(re.compile(b"x"))


def test_a_made_up_token_hides_nothing() -> None:
    """Only tokens of this key are left as they are."""
    clean = Redactor(rules_of(True), TOKENS).text(f"[redacted:a:{SECRET}]", Tally())

    assert SECRET not in clean


def test_numbers_and_names_that_are_no_text(home: Path) -> None:
    """A card number as a number, a name of bytes: hidden, and lifted as what they were."""
    value = {b"swordfish": 1, "card": 4111111111111111, 4111111111111111: [4111111111111111.0, True]}
    redactor = Redactor(rules_of(["swordfish", "4111111111111111"]), TOKENS)

    clean = redactor.value(value, Tally())

    assert "swordfish" not in repr(clean)
    assert "4111111111111111" not in repr(clean)
    assert lift_value(clean, TOKENS) == value


def test_two_names_that_become_one_lose_nothing() -> None:
    """A function that answers the same for every text merges no values."""
    clean = Redactor(rules_of(lambda _text: "***"), TOKENS).value({"a": 1, "b": 2}, Tally())

    assert len(clean) == 2


@pytest.mark.parametrize("rule", KNOWN, ids=lambda rule: rule.name)
def test_no_known_rule_takes_long(rule) -> None:
    """A million characters made to trouble it are looked through in a moment; the time limit is the test's."""
    for text in ("-----BEGIN PRIVATE KEY-----\n", "-eyJ", "eyJ", "sk-", "bearer ", "://a:", "SG.", "-", "a", "\\neyJ"):
        list(rule.spans(text * (1_000_000 // len(text))))


def test_a_broad_rule_leaves_events_what_they_are(home: Path) -> None:
    """A rule that finds every number, or fails on every text, makes no reward, score or count into something else."""

    def broken(_text: str) -> list[str]:
        raise RuntimeError("no")

    for redact in (re.compile(r"\d+"), broken):
        logger = trackway.TrajectoryLogger()
        logger.start_episode("task 1", "v 2", redact=redact)
        logger.record_step(1, "act 3", reward=0.5, test_pass_rate=0.25, duration_ms=4.0)
        logger.end_episode(0.75)
        events = list(trackway.open_store().events("last"))

        assert not [event for event in events if isinstance(event, Unknown)]
        assert trackway.open_store().episode("last").score == 0.75
        assert next(event.value for event in events if event.kind == "reward") == 0.5
        assert trackway.open_store().episode("last").source == "trajectory_logger"


def test_what_is_hidden_in_a_value_is_counted_and_lifted(home: Path) -> None:
    """A mapping given as text says what was removed, and comes back; so does a title made of what was asked."""
    trace = trackway.FullTrace("t1")
    trace.push_user(f"use {SECRET}")
    with trackway.Recorder() as recorder:
        episode = recorder.start("t", redact=[SECRET])
        episode.user({"key": SECRET})
        added = recorder.add(trace, redact=True)
    (asked,) = [event for event in trackway.open_store().events(episode.id) if event.kind == "user"]
    lifted = trackway.open_store(lift=True)

    assert asked.redacted == {"rule": 1}
    assert SECRET in next(event.content for event in lifted.events(episode.id) if event.kind == "user")
    assert next(iter(lifted.events(added))).header.task == f"use {SECRET}"

"""Lines as Claude Code writes them, with content of our own: for the tests of its reader."""

ID = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d0001"
OTHER = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d0002"
USAGE = {
    "input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 57,
    "service_tier": "standard",
}  # fmt: skip


class Log:
    """A session as it is written: entries that follow one another, unless something else is said."""

    def __init__(self, session=ID, version="2.1.119", **fields):
        self.base = {
            "isSidechain": False, "userType": "external", "cwd": "/tmp/boat", "sessionId": session, "version": version,
            "gitBranch": "main", **fields,
        }  # fmt: skip
        self.entries = []
        self.last = None

    def add(self, sort, **fields):
        """An entry with links; its uuid."""
        number = len(self.entries) + 1
        uuid = f"{number:08x}-0000-4000-8000-000000000000"
        links = {
            "parentUuid": self.last,
            "uuid": uuid,
            "timestamp": f"2026-05-12T01:{number // 60:02}:{number % 60:02}.250Z",
        }
        self.entries.append({**links, **self.base, "type": sort, **fields})
        self.last = self.entries[-1]["uuid"]
        return self.last

    def aside(self, sort, **fields):
        """An entry without links."""
        self.entries.append({"type": sort, **fields})

    def says(self, content, **fields):
        """Something under the user's role."""
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def answers(self, *blocks, call="msg_1", usage=None, stop=None, model="claude-opus-4-7", **fields):
        """A response, or a part of one."""
        message = {
            "id": call, "type": "message", "role": "assistant", "model": model, "content": list(blocks),
            "stop_reason": stop, "stop_sequence": None, "usage": USAGE if usage is None else usage,
        }  # fmt: skip
        return self.add("assistant", message=message, requestId=f"req_{call}", **fields)

    def result(self, call_id, content, returned=None, *, is_error=None, **fields):
        """What came of a call."""
        block = {"tool_use_id": call_id, "type": "tool_result", "content": content}
        if is_error is not None:
            block["is_error"] = is_error
        if returned is not None:
            fields["toolUseResult"] = returned
        return self.says([block], **fields)


def text(said, **fields):
    """A block of text."""
    return {"type": "text", "text": said, **fields}


def use(call_id, tool="Bash", **args):
    """A block that is a call."""
    return {"type": "tool_use", "id": call_id, "name": tool, "input": args}


def edit(path, original, old, new, *, every=False, patch=(), **fields):
    """What an edit returns."""
    return {
        "filePath": path, "oldString": old, "newString": new, "originalFile": original, "replaceAll": every,
        "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": list(patch)}],
        "userModified": False, **fields,
    }  # fmt: skip


def shown(path, content, start=1, more=0):
    """What reading a file returns."""
    count = content.count("\n") + 1
    file = {"filePath": path, "content": content, "numLines": count, "startLine": start, "totalLines": count + more}
    return {"type": "text", "file": file}


def whole():
    """A session with most of what there is in one."""
    log = Log()
    log.aside("summary", summary="Boats", leafUuid="elsewhere")
    log.aside(
        "file-history-snapshot", messageId="m", snapshot={"timestamp": "2026-05-12T01:00:00Z"}, isSnapshotUpdate=False
    )
    log.aside("permission-mode", permissionMode="default", sessionId=ID)
    log.add(
        "attachment", attachment={"type": "hook_success", "hookName": "SessionStart", "content": "", "stdout": "{}"}
    )
    log.says("Make the boat float", permissionMode="default")
    log.answers({"type": "thinking", "thinking": "Look.", "signature": "c2ln"}, usage=USAGE | {"output_tokens": 2})
    log.answers(text("I look."), usage=USAGE | {"output_tokens": 2})
    first = log.answers(use("t1", "Read", file_path="/tmp/boat/hull"))
    second = log.answers(use("t2", command="ls"), stop="tool_use")
    log.result("t1", "1\twood", shown("/tmp/boat/hull", "wood\n"), sourceToolAssistantUUID=first, parentUuid=first)
    log.result("t2", "Exit code 2\nno", "Error: Exit code 2\nno", is_error=True, parentUuid=second)
    log.answers(use("t3", "Edit", file_path="/tmp/boat/hull", old_string="wood", new_string="tar"), call="msg_2")
    log.result("t3", "The file was updated", edit("/tmp/boat/hull", "wood\n", "wood", "tar"))
    log.add("attachment", attachment={"type": "edited_text_file", "filename": "/tmp/boat/mast", "snippet": "1\tx"})
    log.add("system", subtype="turn_duration", durationMs=1200, isMeta=False)
    log.add("system", subtype="compact_boundary", content="Conversation compacted", parentUuid=None,
            logicalParentUuid=log.last, compactMetadata={"trigger": "auto", "preTokens": 9000})  # fmt: skip
    log.says("We were building a boat.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    log.answers(text("It floats."), call="msg_3", stop="end_turn")
    log.aside(
        "queue-operation", operation="enqueue", content="and now?", sessionId=ID, timestamp="2026-05-12T01:10:00Z"
    )
    return log.entries

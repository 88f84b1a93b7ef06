package agent

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/git-tilth/git-tilth/internal/proc"
	"github.com/git-tilth/git-tilth/internal/record"
	"github.com/git-tilth/git-tilth/internal/text"
)

// acpMessage is the agent's final message: the text after its last tool call.
type acpMessage struct {
	plain []byte // pieces without a message id
	named []byte // pieces of the last message with an id
	id    string // id of that message
	stop  string // why the turn ended
}

func (m *acpMessage) add(id, piece string) {
	into := &m.plain
	if id != "" {
		if into = &m.named; id != m.id {
			m.id, m.named = id, nil
		}
	}
	*into = append(*into, text.HeadBytes(piece, max(0, maxMessage-len(*into)))...)
}

// text returns the final message. If an agent gives ids to its model's messages, it ignores text without an id,
// because that is the agent's own.
func (m *acpMessage) text() string {
	if m.id != "" {
		return strings.TrimSpace(string(m.named))
	}
	return strings.TrimSpace(string(m.plain))
}

// acpTool collects the updates of a tool call.
type acpTool struct {
	title, kind, input string
	places, edited     []string // paths in its locations, and in its changes or input
	differs            bool     // the call shows its changes
	announced, ended   bool
	unseen             bool // only a permission request named the call
}

// maxACPTools limits how many tool calls of a turn are tracked.
const maxACPTools = 100_000

func (t *acpTool) name() string { return cmp.Or(t.kind, t.title, "tool") }

// edits reports whether the call changes files directly, without a command.
func (t *acpTool) edits() bool {
	return t.kind == "edit" || t.kind == "delete" || t.kind == "move" || t.differs || t.kind == "" && len(t.edited) > 0
}

// update handles a session/update of this conversation.
func (c *acpConn) update(u gjson.Result) {
	if !u.IsObject() {
		c.skipped++
		return
	}
	prompted := c.phase == acpPrompted || c.phase == acpCancelling
	if used := u.Get("_meta.usage"); prompted && used.IsObject() {
		c.usage.call(used)
	}
	switch kind := u.Get("sessionUpdate").Str; kind {
	case "user_message_chunk":
		if c.phase == acpReplaying {
			c.heardUser++
			c.heardBack = false
		}
	case "agent_message_chunk":
		c.heardBack = true
		if prompted && u.Get("content.type").Str == "text" {
			c.said(u.Get("messageId").Str, u.Get("content.text").Str)
		}
	case "tool_call", "tool_call_update":
		c.toolUpdate(u, prompted)
	case "usage_update":
		c.usage.cost(u.Get("cost"))
	case "agent_thought_chunk", "plan", "available_commands_update", "current_mode_update", "config_option_update",
		"session_info_update":
	default:
		c.skipped++
	}
}

// said adds a piece of a message. It separates the agent's notices from the model's text.
func (c *acpConn) said(id, piece string) {
	if c.row.notice != nil && id == "" && c.row.notice().MatchString(piece) {
		if acpRetries().MatchString(piece) {
			c.s.wait(text.OneLine(piece), 0)
		}
		c.usage.notice = text.HeadBytes(strings.TrimSpace(piece), maxActivity)
		return
	}
	c.message.add(id, piece)
}

// tool applies an update to its tool call and returns the call; nil if the update names none. Some models number their
// calls from the start in each turn. The start of a call or a permission request with a known id is therefore a new
// call.
func (c *acpConn) tool(u gjson.Result) *acpTool {
	id := u.Get("toolCallId").Str
	earlier := c.replayed[id] && u.Get("sessionUpdate").Str == "tool_call_update"
	if !u.IsObject() || id == "" || len(id) > maxACPID || earlier {
		return nil
	}
	delete(c.replayed, id)
	t := c.tools[id]
	if t == nil {
		if len(c.tools) >= maxACPTools {
			return nil
		}
		t = &acpTool{}
		c.tools[id] = t
		c.message = acpMessage{}
		c.s.toolBegan()
	}
	if title := u.Get("title").Str; title != "" {
		t.title = text.HeadBytes(text.VisibleLine(title), 300)
	}
	if kind := u.Get("kind").Str; kind != "" {
		t.kind = text.HeadBytes(text.VisibleLine(kind), 50)
	}
	if places := u.Get("locations"); places.IsArray() {
		t.places = nil
		for _, place := range objects(places) {
			t.places = append(t.places, place.Get("path").Str)
		}
	}
	for _, part := range objects(u.Get("content")) {
		if part.Get("type").Str == "diff" {
			t.differs, t.edited = true, append(t.edited, part.Get("path").Str)
		}
	}
	if input := u.Get("rawInput"); input.IsObject() && len(input.Raw) > 2 {
		t.input = text.HeadBytes(input.Raw, maxActivity)
		for _, key := range []string{"file_path", "filePath", "path", "abs_path", "absolute_path"} {
			if named := input.Get(key); named.Type == gjson.String {
				t.edited = append(t.edited, named.Str)
			}
		}
	}
	return t
}

// toolUpdate handles an update of a tool call. It records the call once the input, the path or the end is known,
// because the first update has few details.
func (c *acpConn) toolUpdate(u gjson.Result, prompted bool) {
	if !prompted {
		if id := u.Get("toolCallId").Str; len(c.replayed) < maxACPTools && len(id) <= maxACPID {
			c.replayed[id] = true
		}
		return
	}
	t := c.tool(u)
	if t == nil {
		c.skipped++
		return
	}
	if t.unseen {
		t.unseen = false
		c.s.running++
	}
	status := u.Get("status").Str
	over := status == "completed" || status == "failed"
	if t.input != "" || len(t.places) > 0 || over {
		c.announce(t)
	}
	own := t.kind == "think" // a subagent; ACP has no better kind
	id := u.Get("toolCallId").Str
	switch {
	case over && !t.ended:
		t.ended = true
		c.s.used(t.name(), acpOutput(u), status == "failed")
		c.s.toolEnded()
		c.s.under = slices.DeleteFunc(c.s.under, func(under string) bool { return under == id })
	case own && !t.ended && !slices.Contains(c.s.under, id):
		c.s.under = append(c.s.under, id)
	}
}

// announce records a tool call once.
func (c *acpConn) announce(t *acpTool) {
	if t.announced {
		return
	}
	t.announced = true
	args := map[string]any{"title": t.title}
	if len(t.places) > 0 {
		args["path"] = text.VisibleLine(t.places[0])
	}
	if json.Valid([]byte(t.input)) {
		args["input"] = json.RawMessage(t.input)
	} else if t.input != "" {
		args["input"] = t.input
	}
	c.s.uses(t.name(), string(record.JSON(args)))
}

// acpOutput returns a tool's output as text.
func acpOutput(u gjson.Result) string {
	var b strings.Builder
	for _, part := range objects(u.Get("content")) {
		switch part.Get("type").Str {
		case "content":
			b.WriteString(part.Get("content.text").Str)
		case "diff":
			b.WriteString(part.Get("path").Str + "\n")
		}
	}
	if b.Len() > 0 {
		return b.String()
	}
	raw := u.Get("rawOutput")
	return cmp.Or(raw.Str, raw.Raw)
}

// outside returns the first path of an edit that is neither in the worktree nor in its temporary directory, or "".
func (c *acpConn) outside(t *acpTool) string {
	for _, name := range slices.Concat(t.places, t.edited) {
		path := strings.TrimPrefix(name, "file://")
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.dir, path)
		}
		path = proc.RealPath(path)
		if !slices.ContainsFunc(c.places, func(place string) bool {
			rel, err := filepath.Rel(place, path)
			return err == nil && filepath.IsLocal(rel)
		}) {
			return name
		}
	}
	return ""
}

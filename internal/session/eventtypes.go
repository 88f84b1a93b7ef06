package session

import "slices"

// eventTypes are the types of events that this tool writes. Other writers' records may hold more.
var eventTypes = []string{
	"session_start", "session_prepared", "seed_committed", "session_resume", "context_reset", "memory_load", "prompt_assembled",
	"model_call", "empty_model_response", "nudge", "tool_call", "tool_result", "pre_tool_block", "hook_run", "validator_run",
	"case_parse_error", "evaluator_parse_error", "evaluator_verdict", "ledger_appended", "agent_session", "task_done", "task_failed",
	"commit", "proposed_learnings", "build_products", "log_repaired", "stop",
}

// EventTypes returns the types of events that this tool writes, in the order in which a task has them.
func EventTypes() []string { return slices.Clone(eventTypes) }

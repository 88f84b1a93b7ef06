package loop

import "encoding/json"

// submitCaseTool and verdictTools are the OpenAI function tools that end a task and a review.
var (
	submitCaseTool = json.RawMessage(`{"type":"function","function":{"name":"submit_case","description":"Say that the task is complete and make the case for it. A reviewer decides by the diff, the tests and this case.","parameters":{"type":"object","properties":{"summary":{"type":"string","description":"What was done and why, in a few sentences. It becomes the body of the commit message."},"ac_coverage":{"type":"array","description":"One entry for each acceptance criterion.","items":{"type":"object","properties":{"criterion":{"type":"string"},"addressed_by":{"type":"string","description":"Files and symbols."},"evidence":{"type":"string","description":"How you know: a test and its output, a command."}},"required":["criterion","addressed_by","evidence"]}},"work_arounds":{"type":"array","items":{"type":"string"}},"uncertainties":{"type":"array","items":{"type":"string"}}},"required":["summary","ac_coverage","work_arounds","uncertainties"]}}}`)

	verdictTools = json.RawMessage(`[{"type":"function","function":{"name":"submit_verdict","description":"Give the verdict on the change. Call it exactly once.","parameters":{"type":"object","properties":{"verdict":{"type":"string","enum":["accept","reject"]},"rejection_category":{"type":["string","null"],"enum":["scope_creep","acceptance_gap","weak_test","tests_pass_but_wrong","half_finished","spec_violation",null]},"concern":{"type":["string","null"],"description":"What is wrong, in one or two sentences."},"evidence":{"type":"array","items":{"type":"string"},"description":"Quotes of the diff or of output, with file and line."},"next_step":{"type":["string","null"],"description":"What the author should do."}},"required":["verdict"]}}}]`)
)

// Package scripted is a model endpoint that answers from a script: a real HTTP server on loopback, for the
// tests. Given the same script and the same requests it gives the same answers, byte for byte.
//
// # Script
//
// A script is a JSON object with a queue of steps for each role:
//
//	{"worker": [step, ...], "evaluator": [...], "interview": [...], "self_improve": [...]}
//
// The offered tools decide the role: submit_case is the worker, submit_verdict the evaluator, write_seed the
// interview, no tools self_improve, any other tools the worker. Each request takes the first unused step of its queue
// that matches. When there is none, the answer is a 400 "script exhausted: <role>".
// A script without self_improve answers that role with {"propose":"no"}.
//
// Beside the queues: "key" (a bearer token that every request must carry, else 401), "lenient": true (do not check the
// history), "verify_echo": true (every assistant message in a request must be one that this endpoint gave, with every
// field). Unknown fields are errors.
//
// # Steps: the answer
//
//	content            the text
//	reasoning          reasoning as text
//	reasoning_details  the array of that name, passed on as it is
//	tools              [{"name": ..., "args": ..., "id": ...}]; args is an object or, as a string, the raw text of the
//	                   arguments, valid or not; an id that is not given is call_<request>_<index>
//	message            the whole assistant message, verbatim, instead of the fields above
//	finish_reason      default "tool_calls" with tools, else "stop"
//	usage              the usage object; default 100 prompt and 20 completion tokens
//	empty              true: a message without anything, and zero usage
//
// # Steps: failures
//
//	status             HTTP status; from 400 on with a generic error object unless error or raw is given
//	headers            headers to add, for example {"Retry-After": "0"}
//	error              {"error": this} with any status, 200 included
//	choice_error       an error inside the choice, as some routers send it
//	raw                the body, verbatim
//	cut                break the connection off after so many bytes of the body
//	drop               true: break it off without an answer
//	hang               true: say nothing until the client leaves
//	delay_ms           wait before the answer
//	drip_ms            send the body in small pieces with this pause between them
//
// # Steps: conditions
//
//	repeat             how often; default 1, -1 for ever
//	when               strings that the request must hold, else the step is passed over for a later one
//	when_last          the same for the request's last message
//	expect             strings that the request must hold, else the answer is a 400 that says which one is missing;
//	                   the step is not used up
//	forbid             strings that the request must not hold, in the same way
//	note               for the reader of the script
//
// when, when_last, expect and forbid are a string or a list of them. They are looked for in the messages' text as well
// as in the request's JSON.
//
// Unless the script is lenient, histories that a strict endpoint refuses get a 400: a tool call without an answer, an
// answer without a call, an empty assistant message, an unknown role.
package scripted

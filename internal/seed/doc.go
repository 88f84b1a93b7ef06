// Package seed makes, checks and installs a seed: the task list of a session with its acceptance tests.
//
// A seed comes from an interview (Interview), in which the model reads the source tree and asks one question at a time,
// or from a file (Import). Either way it is a Bundle: Check checks it, and Install installs it, completely or not at
// all. EditPlan checks a plan that its user changed.
//
// The rules that hold here:
//   - Texts of a model or a file are untrusted: sizes are bounded, and a refusal names the broken rule and its fix.
//   - Nothing of a bundle is written before all of it has been checked.
//   - The package runs no git and no model by itself: both come in as functions.
package seed

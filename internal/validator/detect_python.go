package validator

import "context"

func python(ctx context.Context, p *project) []Validator { return nil }

package validator

import "context"

func rust(ctx context.Context, p *project) []Validator { return nil }

package validator

import "context"

func golang(ctx context.Context, p *project) []Validator { return nil }

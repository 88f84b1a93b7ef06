package validator

import "context"

func node(ctx context.Context, p *project) []Validator { return nil }

package web

func (p *Pages) mountFirstSteps() {}

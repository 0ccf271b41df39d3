package top

import "charm.land/lipgloss/v2"

// The colours are the terminal's own sixteen, so that they suit its background.
var (
	boldStyle    = lipgloss.NewStyle().Bold(true)
	focusStyle   = lipgloss.NewStyle().Bold(true).Reverse(true)
	idleStyle    = lipgloss.NewStyle().Faint(true)
	warningStyle = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	alarmStyle   = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
)

// painter styles parts of the screen, or leaves them as they are. Colours that the terminal does
// not have, or that NO_COLOR forbids, are taken off by the renderer.
type painter struct{ styled bool }

func (p painter) with(style lipgloss.Style, text string) string {
	if !p.styled || text == "" {
		return text
	}
	return style.Render(text)
}

func (p painter) heading(text string, focused bool) string {
	if focused {
		return p.with(focusStyle, text)
	}
	return p.with(boldStyle, text)
}

func (p painter) cell(text string, l level) string {
	switch l {
	case warning:
		return p.with(warningStyle, text)
	case alarming:
		return p.with(alarmStyle, text)
	case idle:
		return p.with(idleStyle, text)
	default:
		return text
	}
}

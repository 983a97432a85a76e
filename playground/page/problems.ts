/** The list of diagnostics below the editor, and the line above it. */
import type { Problems } from '../protocol.ts'
import { byId, element } from './dom.ts'
import { type Editor, replaceRange } from './editor.ts'

export function showStatus(text: string, isError = false): void {
  const status = byId('status')
  status.textContent = text
  status.className = isError ? 'bad' : ''
}

/** `ms`: milliseconds of the check. */
export function showProblems({ marks, elsewhere }: Problems, { view, show }: Editor, ms: number): void {
  show(marks)
  const count = marks.length + elsewhere.length
  showStatus(
    count === 0
      ? `No errors. Checked in ${Math.round(ms)} ms.`
      : count === 1
        ? '1 problem'
        : `${count} problems`,
    count > 0,
  )
  const list = byId('problems')
  list.hidden = count === 0
  list.replaceChildren(
    ...marks.map((m) => {
      const line = view.state.doc.lineAt(Math.min(m.from, view.state.doc.length))
      return element(
        'li',
        {},
        element(
          'button',
          {
            type: 'button',
            className: 'problem-line',
            title: 'Go to the place',
            onclick: () => {
              view.dispatch({ selection: { anchor: m.from, head: m.to }, scrollIntoView: true })
              view.focus()
            },
          },
          element('span', { className: 'place', textContent: `${line.number}:${m.from - line.from + 1}` }),
          ` ${m.message} `,
          element('span', { className: 'quiet', textContent: m.code }),
        ),
        ...(m.expected ? [element('p', { textContent: `expected: ${m.expected}` })] : []),
        ...(m.hint ? [element('p', { textContent: `hint: ${m.hint}` })] : []),
        ...m.fixes.map((fix) =>
          element('button', {
            type: 'button',
            className: 'fix',
            textContent: `Replace by ${fix}`,
            onclick: () => {
              replaceRange(view, m.from, m.to, fix)
              view.focus()
            },
          }),
        ),
      )
    }),
    ...elsewhere.map((text) => element('li', {}, element('pre', { textContent: text }))),
  )
}

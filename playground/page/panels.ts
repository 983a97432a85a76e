/** The views of a variant: result, picture, loops, generated code. Each fills one column. */
import type { Code, Loops, Picture, RunResult, TextTarget } from '../protocol.ts'
import { bytes, element, milliseconds, number } from './dom.ts'
import { showText } from './editor.ts'
import { code, loops as loopsLanguage } from './spt-language.ts'

/** An error of the compiler, as the command line prints it. */
export function showError(parent: HTMLElement, text: string): void {
  parent.replaceChildren(element('pre', { className: 'error', textContent: text, aria: { role: 'alert' } }))
}

export function showNote(parent: HTMLElement, text: string): void {
  parent.replaceChildren(element('p', { className: 'quiet pad', textContent: text }))
}

export function showPicture(parent: HTMLElement, picture: Picture): void {
  // An SVG of the compiler, with escaped texts; as an image, it could not be read by screen readers.
  const svg = new DOMParser().parseFromString(picture.svg, 'image/svg+xml').documentElement
  const { nonzeros, slots, bytes: size, csrBytes, parts, format } = picture
  const facts = [
    format,
    parts > 1 ? `${parts} parts` : '',
    `${number(nonzeros)} nonzeros`,
    slots > nonzeros ? `${number(slots - nonzeros)} slots of padding` : size > 0 ? 'no padding' : '',
    size > 0 ? `${bytes(size)}, ${(size / csrBytes).toFixed(2)} × CSR` : '',
  ]
  parent.replaceChildren(
    element('p', { className: 'facts', textContent: facts.filter(Boolean).join(' · ') }),
    element('div', { className: 'picture' }, document.importNode(svg, true)),
  )
}

export function showCode(parent: HTMLElement, { text, note }: Code, target: TextTarget): void {
  const holder = element('div', { className: 'text' })
  parent.replaceChildren(...(note ? [element('p', { className: 'facts', textContent: note })] : []), holder)
  showText(holder, text, code, `Generated ${target}`)
}

/** The loops after a step, which a slider and a list select. */
export function showLoops(
  parent: HTMLElement,
  { states, note, error }: Loops,
  step: number,
  selected: (step: number) => void,
): void {
  const last = states.length - 1
  let at = step < 0 || step > last ? last : step
  const holder = element('div', { className: 'text' })
  const output = element('output', { className: 'step-name' })
  const slider = element('input', {
    type: 'range',
    min: '0',
    max: String(last),
    value: String(at),
    className: 'steps-slider',
    aria: { label: 'Schedule step' },
    oninput: () => show(Number(slider.value)),
  })
  const buttons = states.map(({ step: text }, k) =>
    element('button', { type: 'button', textContent: text, title: text, onclick: () => show(k) }),
  )
  const list = element('ol', { className: 'steps', start: 0 }, ...buttons.map((b) => element('li', {}, b)))
  function show(k: number): void {
    at = k
    slider.value = String(k)
    const { step: text, text: now } = states[k]!
    output.textContent = k === 0 ? text : `after step ${k} of ${last}: ${text}`
    slider.setAttribute('aria-valuetext', output.textContent)
    for (const [n, b] of buttons.entries()) {
      if (n === k) b.setAttribute('aria-current', 'step')
      else b.removeAttribute('aria-current')
    }
    const before = k === 0 ? null : new Set(states[k - 1]!.text.split('\n').map((l) => l.trim()))
    const changed = now.split('\n').flatMap((l, n) => (before && !before.has(l.trim()) ? [n + 1] : []))
    showText(holder, now, loopsLanguage, `Loops ${output.textContent}`, new Set(changed))
    selected(k === last ? -1 : k)
  }
  parent.replaceChildren(
    ...(note ? [element('p', { className: 'facts', textContent: note })] : []),
    element('div', { className: 'stepper' }, slider, output),
    ...(error === undefined
      ? []
      : [element('pre', { className: 'error', textContent: error, aria: { role: 'alert' } })]),
    element('div', { className: 'loops' }, list, holder),
  )
  show(at)
}

const median = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0

const row = (name: string, value: string): HTMLElement =>
  element('tr', {}, element('th', { scope: 'row', textContent: name }), element('td', { textContent: value }))

/** `slowest`: milliseconds of the slower variant, for the bar; `null` if there is one variant. */
export function showResult(parent: HTMLElement, r: RunResult, slowest: number | null): void {
  const time = median(r.times)
  const sampled = r.compared < r.elements ? ` of ${number(r.elements)}` : ''
  const verdict = r.ok
    ? r.verdict === 'empty'
      ? 'Verified: the outputs have no elements'
      : `Verified: ${number(r.compared)}${sampled} elements agree with the reference`
    : r.verdict === 'undecided'
      ? 'Not verified'
      : 'Wrong: the outputs differ from the reference'
  parent.replaceChildren(
    element('p', { className: r.ok ? 'verdict ok' : 'verdict wrong', textContent: verdict }),
    ...[...r.problems, ...r.warnings].map((p) => element('p', { className: 'pad problem', textContent: p })),
    element(
      'p',
      { className: 'time' },
      element('strong', { textContent: milliseconds(time) }),
      ` median of ${number(r.runs)} ${r.runs === 1 ? 'run' : 'runs'}`,
    ),
    ...(slowest === null ? [] : [bar(time, slowest)]),
    element(
      'table',
      {},
      element(
        'tbody',
        {},
        row('Schedule', r.schedule),
        row('Device', r.device),
        row('Relative error', r.relativeError.toExponential(1)),
        row('Compile', milliseconds(r.buildMs)),
        row('Convert and upload', milliseconds(r.bindMs)),
        row('First run and reference', milliseconds(r.verifyMs)),
        row('Memory', bytes(r.bytes)),
        row('Same bits in every run', r.deterministic ? 'yes' : 'no: floating-point sums by atomic updates'),
        ...(r.random.length > 0 ? [row('Random data', r.random.join(', '))] : []),
        ...r.outputs.map((o) =>
          row(
            `${o.name} (${o.shape.map(number).join(' × ')})`,
            `${o.values.map((x) => String(Math.round(x * 1000) / 1000)).join(', ')}${o.shape.reduce((a, b) => a * b, 1) > o.values.length ? ', …' : ''}`,
          ),
        ),
      ),
    ),
  )
}

export const timeOf = (r: RunResult): number => median(r.times)

function bar(time: number, slowest: number): HTMLElement {
  const fill = element('span', {})
  const ratio = slowest / Math.max(time, Number.MIN_VALUE)
  fill.style.width = `${Math.min(100, Math.max(1, 100 / ratio))}%`
  const label = ratio >= 1.005 ? `${ratio.toFixed(2)} × faster` : 'the slower of both'
  return element(
    'div',
    { className: 'compare' },
    element('div', { className: 'bar-track', aria: { hidden: 'true' } }, fill),
    label,
  )
}

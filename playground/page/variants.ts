/** The controls of a format and a schedule, once or twice side by side. */
import type { Checked, KernelInfo, Variant } from '../protocol.ts'
import { byId, element, fillSelect } from './dom.ts'

/** Formats with arguments that suit most matrices. */
const FORMATS = [
  'csr',
  'coo',
  'dcsr',
  'csc',
  'ell',
  'bsr(4)',
  'bsr(16)',
  'bsr_masked(8)',
  'sr_bcrs(8, 4)',
  'sell(8, 32)',
  'rows_ell(8)',
  'by_length',
  'bitmap_blocks',
  'dia',
  'hyb(1, 4)',
  'diagonal_rest',
  'dense_blocks(8, 0.5)',
  'column_ranges(4)',
]
const OTHER = '…'

interface Events {
  /** The new list of variants. */
  readonly changed: (variants: readonly Variant[]) => void
}

export function showVariants(
  variants: readonly Variant[],
  kernel: KernelInfo | undefined,
  { formats, own }: { formats: Checked['formats']; own: string },
  { changed }: Events,
): void {
  const parent = byId('variants')
  const focused = document.activeElement?.id
  const set = (k: number, patch: Partial<Variant>): void =>
    changed(variants.map((v, at) => (at === k ? { ...v, ...patch } : v)))
  const cards = variants.map((v, k) => {
    const letter = variants.length > 1 ? 'AB'[k]! : ''
    return element(
      'fieldset',
      { className: 'variant' },
      element('legend', {
        className: letter ? 'letter' : 'hidden',
        textContent: letter || 'Format and schedule',
      }),
      formatField(v, k, kernel, formats, own, (format) => set(k, { format })),
      scheduleField(v, k, kernel, (schedule) => set(k, { schedule })),
      ...(k === 1
        ? [
            element('button', {
              type: 'button',
              id: 'single',
              className: 'plain',
              textContent: '×',
              title: 'Remove B',
              aria: { label: 'Remove B' },
              onclick: () => changed(variants.slice(0, 1)),
            }),
          ]
        : []),
    )
  })
  const add = element('button', {
    type: 'button',
    id: 'compare',
    textContent: 'Compare with…',
    title: 'Show a second format and schedule side by side',
    onclick: () => {
      const other = kernel?.schedules.find(
        (s) => s.name !== variants[0]!.schedule && s.parameters.every((p) => !p.required),
      )
      changed([
        ...variants,
        { format: '', schedule: variants[0]!.schedule === '' ? (other?.name ?? '') : '' },
      ])
    },
  })
  parent.replaceChildren(...cards, ...(variants.length === 1 ? [add] : []))
  if (focused) document.getElementById(focused)?.focus()
}

function formatField(
  { format }: Variant,
  k: number,
  kernel: KernelInfo | undefined,
  formats: readonly string[],
  own: string,
  set: (format: string) => void,
): HTMLElement {
  const select = element('select', { id: `format-${k}` })
  const input = element('input', {
    id: `format-text-${k}`,
    hidden: true,
    size: 16,
    placeholder: 'bsr(8) + csr',
    aria: { label: 'Format' },
    onchange: () => set(input.value.trim()),
  })
  // Formats of the text are selected by name; those with parameters are typed.
  const declared = formats.filter((f) => new RegExp(`^format ${f}\\b(?! *\\()`, 'm').test(own))
  fillSelect(
    select,
    [
      { value: '', label: 'as scheduled' },
      ...declared.map((f) => ({ value: f, label: f, group: 'of the text' })),
      ...FORMATS.map((f) => ({ value: f, label: f, group: 'standard' })),
      { value: OTHER, label: 'other…' },
    ],
    format,
  )
  select.disabled = kernel?.matrix === null
  select.onchange = () => {
    if (select.value !== OTHER) return set(select.value)
    input.hidden = false
    input.value = format
    input.focus()
  }
  return element(
    'label',
    { className: 'field' },
    kernel?.matrix ? `Format of ${kernel.matrix} ` : 'Format ',
    select,
    input,
  )
}

function scheduleField(
  { schedule }: Variant,
  k: number,
  kernel: KernelInfo | undefined,
  set: (schedule: string) => void,
): HTMLElement {
  const [, name = '', args = ''] = /^([^(]*)(?:\((.*)\))?$/.exec(schedule) ?? []
  const select = element('select', { id: `schedule-${k}` })
  fillSelect(
    select,
    [
      { value: '', label: 'default' },
      ...(kernel?.schedules ?? []).map((s) => ({ value: s.name, label: s.name })),
    ],
    name.trim(),
  )
  const parameters = kernel?.schedules.find((s) => s.name === name.trim())?.parameters ?? []
  const input = element('input', {
    id: `arguments-${k}`,
    hidden: parameters.length === 0 && args === '',
    value: args,
    size: 10,
    placeholder: parameters.map((p) => p.name).join(', '),
    title: `Arguments: ${parameters.map((p) => `${p.name}${p.required ? '' : ' (optional)'}`).join(', ')}`,
    aria: { label: `Arguments of ${name}` },
    onchange: () => set(input.value.trim() ? `${name}(${input.value.trim()})` : name),
  })
  select.onchange = () => set(select.value)
  return element('label', { className: 'field' }, 'Schedule ', select, input)
}

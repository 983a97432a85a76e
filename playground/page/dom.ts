/** Elements by id, and new elements with properties and children. */

export const byId = <T extends HTMLElement = HTMLElement>(id: string): T => document.getElementById(id) as T

type Properties<T> = { readonly [K in keyof T]?: T[K] } & { readonly aria?: Readonly<Record<string, string>> }

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  { aria = {}, ...properties }: Properties<HTMLElementTagNameMap[K]> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const e = Object.assign(document.createElement(tag), properties)
  for (const [name, value] of Object.entries(aria))
    e.setAttribute(name === 'role' ? name : `aria-${name}`, value)
  e.append(...children)
  return e
}

interface Choice {
  readonly value: string
  readonly label: string
  readonly group?: string
}

/** Fills a select; a value that is not among the choices is added, so that nothing is lost. */
export function fillSelect(select: HTMLSelectElement, choices: readonly Choice[], value: string): void {
  const all = choices.some((c) => c.value === value) ? choices : [...choices, { value, label: value }]
  const groups = new Map<string, HTMLElement>()
  const options = all.map(({ value: v, label, group }): HTMLElement => {
    const option = element('option', { value: v, textContent: label })
    if (group === undefined) return option
    const known = groups.get(group)
    if (known) {
      known.append(option)
      return known
    }
    const parent = element('optgroup', { label: group }, option)
    groups.set(group, parent)
    return parent
  })
  select.replaceChildren(...new Set(options))
  select.value = value
}

export const number = (n: number): string => n.toLocaleString('en-US')

export const milliseconds = (ms: number): string =>
  ms >= 100 ? `${Math.round(ms)} ms` : ms >= 1 ? `${ms.toFixed(1)} ms` : `${ms.toPrecision(3)} ms`

export const bytes = (n: number): string =>
  n < 1024 ? `${n} bytes` : n < 2 ** 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / 2 ** 20).toFixed(1)} MiB`

/**
 * Random kernels that update in place what their conditions, names and values read: several statements of an iteration
 * one after the other, with iterations among them, under conditions on what the same statements write.
 */
import type { RefTensor } from '../../src/reference/index.ts'
import type { Choices } from './choices.ts'
import { entries, size, values } from './matrix-gen.ts'
import type { Sample } from './program-gen.ts'
import { FORMATS } from './program-parts.ts'

/** Coordinates that are open, and names. */
interface Scope {
  readonly open: readonly ('i' | 'j' | 'k')[]
  readonly lets: readonly string[]
}

/** What is updated, by its axes. */
const UPDATED = {
  T: [],
  D: ['i'],
  O: ['i', 'j'],
  Z: ['i', 'j'],
  P: ['i', 'j', 'k'],
  Q: ['i', 'j', 'k'],
} as const
type Updated = keyof typeof UPDATED
const READ = { V: ['i'], W: ['j'], M: ['i', 'j'] } as const

const DECLARATIONS = `
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis k = dense_fixed(2)
  axis s = sparse_variable(i, n)
  buffer V: TYPE[i] in
  buffer W: TYPE[j] in
  buffer M: TYPE[i, j] in
  buffer A: TYPE[i, s] in
  buffer T: TYPE[] inout
  buffer D: TYPE[i] inout
  buffer Z: TYPE[i, j] inout
  buffer Q: TYPE[i, j, k] inout
  buffer O: TYPE[i, j] inout
  buffer P: TYPE[i, j, k] inout`

/** Narrow values leave their types in a step or two, and go back by a cast. */
const ELEMENTS = { i32: Int32Array, i8: Int8Array, u8: Uint8Array } as const
type Element = keyof typeof ELEMENTS

export const inPlace = (c: Choices): Sample => new Generator(c).run()

class Generator {
  readonly #c: Choices
  readonly #uses = new Set<string>()
  readonly #type: Element
  #fresh = 0

  constructor(c: Choices) {
    this.#c = c
    this.#type = c.pick(['i32', 'i32', 'i8', 'u8'])
  }

  run(): Sample {
    const c = this.#c
    const [m, n] = [size(c), size(c)]
    const tensors: Record<string, Sample['tensors'][string]> = {}
    const buffers: Record<string, RefTensor> = {}
    const extent = { i: m, j: n, k: 2 }
    for (const [name, axes] of Object.entries({ ...UPDATED, ...READ })) {
      const shape = axes.map((a) => extent[a])
      const numbers = this.#numbers(shape.reduce((a, b) => a * b, 1))
      tensors[name] = { kind: 'dense', shape, values: ELEMENTS[this.#type].from(numbers), dtype: this.#type }
      buffers[name] = numbers
    }
    const e = entries(c, [m, n], false)
    const numbers = this.#numbers(e.count)
    const coords = e.coords.map((x) => Int32Array.from(x))
    tensors.A = {
      kind: 'coords',
      shape: [m, n],
      coords,
      values: ELEMENTS[this.#type].from(numbers),
      dtype: this.#type,
    }
    buffers.A = { coords: e.coords, values: numbers }
    const body = this.#statements({ open: [], lets: [] }, 3, false)
    const text = `${FORMATS}kernel k(m: size, n: size) {${DECLARATIONS.replaceAll('TYPE', this.#type)}\n${body.map((l) => `  ${l}`).join('\n')}\n}\n`
    return {
      text,
      params: { m, n },
      tensors,
      reference: { params: { m, n }, buffers, structure: {} },
      uses: this.#uses,
    }
  }

  #numbers(count: number): number[] {
    const c = this.#c
    const small = values(c, this.#type, count, false)
    return this.#type === 'i32' ? small : small.map((x) => (c.chance(30) ? 100 + x : x))
  }

  #name(base: string): string {
    return `${base}${this.#fresh++}`
  }

  /** What all of its axes are open for. */
  #of<K extends string>(scope: Scope, all: Readonly<Record<K, readonly string[]>>): K[] {
    return (Object.keys(all) as K[]).filter((name) =>
      all[name].every((a) => scope.open.includes(a as 'i' | 'j' | 'k')),
    )
  }

  #element(scope: Scope): string {
    const c = this.#c
    const all = { ...UPDATED, ...READ }
    const updated = this.#of(scope, UPDATED)
    // What is written last is most telling.
    const name = c.chance(60) ? updated.at(-1)! : c.pick([...updated, ...this.#of(scope, READ)])
    return `${name}[${all[name].join(', ')}]`
  }

  #value(scope: Scope, depth = 1): string {
    const c = this.#c
    const at = (): string => this.#value(scope, depth - 1)
    const form = depth > 0 ? c.pick(['-', '+', 'min', 'select', 'leaf', 'leaf'] as const) : 'leaf'
    switch (form) {
      case '-':
        return `(1 - ${at()})`
      case '+':
        return `(${at()} + ${at()})`
      case 'min':
        return `${c.pick(['min', 'max'])}(${at()}, ${at()})`
      case 'select':
        return `select(${this.#condition(scope, 0)}, ${at()}, ${at()})`
      case 'leaf':
        if (scope.lets.length > 0 && c.chance(50)) return c.pick(scope.lets)
        // In range or not, by what a condition says or said.
        if (c.chance(10)) return `V[${this.#element(scope)}]`
        if (scope.open.length > 0 && c.chance(15)) return c.pick(scope.open)
        return c.chance(15) ? `${c.below(4)}` : this.#element(scope)
    }
  }

  /** A value that fits the elements. */
  #stored(scope: Scope): string {
    return this.#fitting(this.#value(scope))
  }

  #fitting(value: string): string {
    return this.#type === 'i32' ? value : `${this.#type}(${value})`
  }

  #condition(scope: Scope, depth = 1): string {
    const c = this.#c
    const compare = (): string =>
      `${this.#value(scope, depth)} ${c.pick(['>', '<', '>=', '!=', '=='])} ${c.chance(50) ? c.below(4) : this.#value(scope, 0)}`
    if (c.chance(15)) {
      const x = this.#element(scope)
      return `(${x} >= 0 and ${x} < m)`
    }
    if (depth === 0 || c.chance(70)) return `(${compare()})`
    return `((${compare()}) ${c.pick(['and', 'or'])} ${this.#condition(scope, depth - 1)})`
  }

  #statements(scope: Scope, depth: number, inside = true): string[] {
    const c = this.#c
    const out: string[] = []
    let here = scope
    for (let n = 1 + c.below(3); n > 0; n--) {
      const own = this.#of(here, UPDATED)
      // A kernel is made of iterations.
      const kind = inside
        ? c.pick([
            'update',
            'reduce',
            'reduce',
            'iterate',
            'iterate',
            'if',
            'if',
            'let',
            'swap',
            'outlives',
          ] as const)
        : 'iterate'
      // What has fewer axes would be written by several iterations.
      const goal: Updated = own.at(-1)!
      const element = `${goal}[${UPDATED[goal].join(', ')}]`
      if (kind === 'let') {
        const name = this.#name('x')
        out.push(`let ${name} = ${c.chance(50) ? this.#value(here) : this.#stored(here)}`)
        here = { ...here, lets: [...here.lets, name] }
      } else if (kind === 'outlives') {
        const name = this.#name('x')
        out.push(
          `let ${name} = ${this.#fitting(`${element} * ${this.#element(here)}`)}`,
          `${element} = ${this.#stored(here)}`,
          `${element} = ${this.#fitting(`${name} % 7`)}`,
        )
      } else if (kind === 'reduce') out.push(...this.#reduce(here, element))
      else if (kind === 'if' && depth > 0) {
        out.push(`if ${this.#condition(here)} {`, ...this.#inside(here, depth), '}')
        if (c.chance(30)) out.push('else {', ...this.#inside(here, depth), '}')
      } else if (kind === 'iterate' && depth > 0 && here.open.length < 3) {
        const next = !inside && c.chance(15) ? [] : [(['i', 'j', 'k'] as const)[here.open.length]!]
        const inner = { ...here, open: [...here.open, ...next] }
        const where = c.chance(50) ? ` where ${this.#condition(inner)}` : ''
        const head = `[${next}]${next.length > 0 ? ' as S' : ''}`
        out.push(`iterate ${this.#name('it')} ${head}${where} {`, ...this.#inside(inner, depth), '}')
      } else if (kind === 'swap' && own.length > 2) {
        const [a, b] = here.open.length > 2 ? (['Q', 'P'] as const) : (['Z', 'O'] as const)
        const at = UPDATED[a].join(', ')
        out.push(`(${a}[${at}], ${b}[${at}]) = (${this.#stored(here)}, ${this.#stored(here)})`)
      } else if (kind === 'update') out.push(`${element} = ${this.#stored(here)}`)
      else continue
      this.#uses.add(kind)
    }
    if (out.length > 0 || !inside) return out
    const last = this.#of(scope, UPDATED).at(-1)!
    return [`${last}[${UPDATED[last].join(', ')}] = ${this.#stored(scope)}`]
  }

  #inside(scope: Scope, depth: number): string[] {
    return this.#statements(scope, depth - 1).map((l) => `  ${l}`)
  }

  /** What a reduction combines does not read what it is combined into. */
  #reduce(scope: Scope, element: string): string[] {
    const c = this.#c
    const op = c.pick(['+', 'max', 'min'])
    const has = (a: 'i' | 'j'): boolean => scope.open.includes(a)
    const [head, value] = c.pick([
      ...(has('i') && !has('j') ? [['j', 'M[i, j]'] as const, ['s', 'A[i, s]'] as const] : []),
      ...(has('i') ? [] : [['i', 'V[i]'] as const]),
      ...(has('j') ? [['k', 'W[j] * k'] as const] : [['j', 'W[j] - 1'] as const]),
    ])
    if (scope.open.includes('k')) return [`${element} ${op}= ${this.#fitting('1')}`]
    return [`iterate ${this.#name('it')} [${head}] as R { ${element} ${op}= ${this.#fitting(value)} }`]
  }
}

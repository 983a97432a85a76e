/**
 * Random kernels whose statements run under conditions of every kind of expression: over sizes, scalars, names, coordinates
 * and data, around any writer of an output or a local. What they leave out has to have a value all the same.
 */
import type { RefTensor } from '../../src/reference/index.ts'
import type { Choices } from './choices.ts'
import { entries, size, values } from './matrix-gen.ts'
import type { Sample } from './program-gen.ts'
import { FORMATS } from './program-parts.ts'

type Size = 'm' | 'n'

/** Names in scope, coordinates with what bounds them. */
interface Scope {
  readonly coords: readonly { readonly name: string; readonly size?: Size }[]
  readonly lets: readonly string[]
}

const AXES = `
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis k = dense_fixed(2)
  axis s = sparse_variable(i, n)
  axis r = sparse_variable(m)
  axis t = sparse_variable(r, n)
  axis f = fused(i, s)
  axis l = dense_fixed(m)
  axis g = gathered(j, G)
  buffer V: i32[i] in
  buffer X: f32[i] in
  buffer W: i32[j] in
  buffer B: bool[j] in
  buffer U: u8[i] in
  buffer M: i32[i, j] in
  buffer A: i32[i, s] in
  buffer R: i32[r, t] in
  buffer G: i32[l] in`

const BOUND: Readonly<Record<string, Size | undefined>> = {
  ...{ i: 'm', r: 'm', l: 'm', j: 'n', s: 'n', t: 'n', g: 'n' },
}

/** Iterators with their kinds, and what is written: its axes, and the index at them. */
interface Place {
  readonly head: readonly string[]
  readonly kinds: string
  readonly axes: string
  readonly index: string
}

const ASSIGNED: readonly Place[] = [
  { head: ['i'], kinds: 'S', axes: 'i', index: 'i' },
  { head: ['i', 'j'], kinds: 'SS', axes: 'i, j', index: 'i, j' },
  { head: ['j', 'i'], kinds: 'SS', axes: 'i, j', index: 'i, j' },
  { head: ['i', 's'], kinds: 'SS', axes: 'i, s', index: 'i, s' },
  { head: ['f'], kinds: 'S', axes: 'i, s', index: 'i, s' },
  { head: ['i', 's'], kinds: 'SS', axes: 'i, j', index: 'i, s' },
  { head: ['r'], kinds: 'S', axes: 'i', index: 'r' },
  { head: ['i'], kinds: 'S', axes: 'i', index: 'm - 1 - i' },
  { head: ['i', 'k'], kinds: 'SS', axes: 'i, k', index: 'i, k' },
  { head: [], kinds: '', axes: '', index: '' },
]
const REDUCED: readonly Place[] = [
  { head: ['i', 'j'], kinds: 'SR', axes: 'i', index: 'i' },
  { head: ['j', 'i'], kinds: 'RS', axes: 'i', index: 'i' },
  { head: ['i', 's'], kinds: 'SR', axes: 'i', index: 'i' },
  { head: ['i', 's'], kinds: 'RS', axes: 'j', index: 's' },
  { head: ['i', 'j', 'k'], kinds: 'SSR', axes: 'i, j', index: 'i, j' },
  { head: ['k', 'i', 's'], kinds: 'RSS', axes: 'i, s', index: 'i, s' },
  { head: ['f'], kinds: 'R', axes: 'i', index: 'i' },
  { head: ['r', 't'], kinds: 'SR', axes: 'i', index: 'r' },
  { head: ['i', 'g'], kinds: 'SR', axes: 'i', index: 'i' },
  { head: ['i', 'j'], kinds: 'RR', axes: '', index: '' },
  ...ASSIGNED,
]

const names = (place: readonly string[]): Scope => ({
  coords: place
    .flatMap((x) => (x === 'f' ? ['i', 's'] : [x]))
    .map((name) => {
      const bound = BOUND[name]
      return bound ? { name, size: bound } : { name }
    }),
  lets: [],
})

export const conditional = (c: Choices): Sample => new Generator(c).run()

class Generator {
  readonly #c: Choices
  readonly #uses = new Set<string>()
  #fresh = 0

  constructor(c: Choices) {
    this.#c = c
  }

  run(): Sample {
    const c = this.#c
    const params = { m: size(c), n: size(c), a: c.pick([1, 0, -2]) }
    const data = this.#data(params)
    const body = this.#body()
    const text = `${FORMATS}kernel k(m: size, n: size, a: i32) {${AXES}\n${body.map((l) => `  ${l}`).join('\n')}\n}\n`
    return { text, params, ...data, uses: this.#uses }
  }

  #data(params: {
    readonly m: number
    readonly n: number
    readonly a: number
  }): Pick<Sample, 'tensors' | 'reference'> {
    const { m, n } = params
    const c = this.#c
    const tensors: Record<string, Sample['tensors'][string]> = {}
    const buffers: Record<string, RefTensor> = {}
    const dense = (name: string, shape: number[], dtype: 'i32' | 'f32' | 'bool' | 'u8'): void => {
      const count = shape.reduce((a, b) => a * b, 1)
      const numbers =
        name === 'G'
          ? values(c, 'u8', count, false).map((x) => x % Math.max(1, n))
          : values(c, dtype, count, false)
      const of = { i32: Int32Array, f32: Float32Array, bool: Uint8Array, u8: Uint8Array }[dtype]
      tensors[name] = { kind: 'dense', shape, values: of.from(numbers), dtype }
      buffers[name] = numbers
    }
    const sparse = (name: string): void => {
      const e = entries(c, [m, n], false)
      const numbers = values(c, 'i32', e.count, false)
      tensors[name] = {
        kind: 'coords',
        shape: [m, n],
        coords: e.coords.map((x) => Int32Array.from(x)),
        values: Int32Array.from(numbers),
        dtype: 'i32',
      }
      buffers[name] = { coords: e.coords, values: numbers }
    }
    dense('V', [m], 'i32')
    dense('X', [m], 'f32')
    dense('W', [n], 'i32')
    dense('B', [n], 'bool')
    dense('U', [m], 'u8')
    dense('M', [m, n], 'i32')
    dense('G', [m], 'i32')
    sparse('A')
    sparse('R')
    return { tensors, reference: { params, buffers, structure: {} } }
  }

  // --- expressions ---

  #coordinate(scope: Scope, of?: Size): string {
    const fit = scope.coords.filter((x) => of === undefined || x.size === of)
    return fit.length > 0 ? this.#c.pick(fit).name : this.#c.pick(['0', '1'])
  }

  #element(scope: Scope, depth: number): string {
    const c = this.#c
    const index = (of: Size): string =>
      depth > 0 && c.chance(20) ? this.#value(scope, depth - 1) : this.#coordinate(scope, of)
    const has = (name: string): boolean => scope.coords.some((x) => x.name === name)
    const sparse = has('i') && has('s') ? ['A[i, s]'] : has('r') && has('t') ? ['R[r, t]'] : []
    return c.pick([
      ...sparse,
      `V[${index('m')}]`,
      `W[${index('n')}]`,
      `i32(X[${index('m')}])`,
      `i32(U[${index('m')}])`,
      `M[${index('m')}, ${index('n')}]`,
      ...scope.lets,
    ])
  }

  #value(scope: Scope, depth: number): string {
    const c = this.#c
    const at = (): string => this.#value(scope, depth - 1)
    const leaf = ['coordinate', 'element', 'literal', 'size', 'scalar'] as const
    const deep = [
      'neg',
      'abs',
      'min',
      'max',
      'select',
      'shift',
      'xor',
      'popcount',
      'floor',
      'mod',
      'div',
      '+',
    ] as const
    const form = depth > 0 && c.chance(60) ? c.pick(deep) : c.pick(leaf)
    this.#uses.add(form)
    switch (form) {
      case 'coordinate':
        return this.#coordinate(scope)
      case 'element':
        return this.#element(scope, depth)
      case 'literal':
        return `${c.below(4)}`
      case 'size':
        return c.pick(['m', 'n'])
      case 'scalar':
        return 'a'
      case 'neg':
        return `(-(${at()}))`
      case 'abs':
        return `abs(${at()})`
      case 'min':
      case 'max':
        return `${form}(${at()}, ${at()})`
      case 'select':
        return `select(${this.condition(scope, depth - 1)}, ${at()}, ${at()})`
      case 'shift':
        return `shift_left(${at()}, 1)`
      case 'xor':
        return `${c.pick(['bit_and', 'bit_or', 'bit_xor'])}(${at()}, ${at()})`
      case 'popcount':
        return `popcount(${at()})`
      case 'floor':
        return `i32(${c.pick(['floor', 'ceil', 'round', 'sign', 'exp'])}(f32(${this.#coordinate(scope)})))`
      case 'mod':
        return `(${at()} % ${c.pick([3, 2, 10])})`
      case 'div':
        return `(${at()} / ${c.pick([2, 3])})`
      case '+':
        return `(${at()} ${c.pick(['+', '-', '*'])} ${this.#coordinate(scope)})`
    }
  }

  condition(scope: Scope, depth: number): string {
    const c = this.#c
    const again = (): string => this.condition(scope, depth - 1)
    const deep = ['not', 'and', 'or', 'either', 'same'] as const
    const form =
      depth > 0 && c.chance(30) ? c.pick(deep) : c.pick(['compare', 'compare', 'compare', 'flag'] as const)
    this.#uses.add(form)
    switch (form) {
      case 'not':
        return `(not ${again()})`
      case 'and':
      case 'or':
        return `(${again()} ${form} ${again()})`
      case 'either':
        return `select(${again()}, ${again()}, ${again()})`
      case 'same':
        return `(${again()} == ${c.pick(['true', 'false'])})`
      case 'flag':
        return c.chance(50)
          ? `B[${this.#coordinate(scope, 'n')}]`
          : `(i32(B[${this.#coordinate(scope, 'n')}]) > 0)`
      case 'compare':
        return `(${this.#value(scope, depth)} ${c.pick(['>', '<', '>=', '<=', '==', '!='])} ${this.#value(scope, depth - 1)})`
    }
  }

  // --- statements ---

  #name(base: string): string {
    return `${base}${this.#fresh++}`
  }

  /** `body` in an iteration over the place, in one or two, with conditions and names on the way. */
  #around(place: Place, body: (scope: Scope) => string[]): string[] {
    const c = this.#c
    const cut = c.chance(40) && !place.head.includes('f') ? 1 + c.below(place.head.length) : place.head.length
    const levels = [
      [place.head.slice(0, cut), place.kinds.slice(0, cut)] as const,
      ...(cut < place.head.length ? [[place.head.slice(cut), place.kinds.slice(cut)] as const] : []),
    ]
    if (levels.length > 1) this.#uses.add('nested')
    const go = (k: number, outer: Scope): string[] => {
      if (k === levels.length) return body(outer)
      const [head, kinds] = levels[k]!
      const own = names(head)
      let scope: Scope = { coords: [...outer.coords, ...own.coords], lets: outer.lets }
      const where = c.chance(75) ? ` where (${this.condition(scope, 2)})` : ''
      if (where) this.#uses.add('where')
      const lines: string[] = []
      if (c.chance(30)) {
        const name = this.#name('x')
        lines.push(`let ${name} = ${this.#value(scope, 2)}`)
        scope = { ...scope, lets: [...scope.lets, name] }
        this.#uses.add('let')
      }
      const inner = go(k + 1, scope)
      if (c.chance(15)) {
        this.#uses.add('if')
        lines.push(`if (${this.condition(scope, 2)}) {`, ...inner.map((l) => `  ${l}`), '}')
      } else lines.push(...inner)
      const head1 = `iterate ${this.#name('it')} [${head.join(', ')}]${kinds ? ` as ${kinds}` : ''}${where} {`
      return [head1, ...lines.map((l) => `  ${l}`), '}']
    }
    return go(0, { coords: [], lets: [] })
  }

  #body(): string[] {
    const c = this.#c
    const reduces = c.chance(50)
    const place = c.pick(reduces ? REDUCED : ASSIGNED)
    const op = reduces ? c.pick(['+', 'max', 'min']) : ''
    this.#uses.add(reduces ? 'reduce' : 'assign')
    const local = c.chance(50)
    this.#uses.add(local ? 'local' : 'out')
    const pair = !reduces && c.chance(25)
    const fill = c.chance(20) ? ' fill 3' : ''
    const decls = [`buffer Y: i32[${place.axes}] ${local ? 'local' : 'out'}${fill}`]
    if (pair) decls.push(`buffer Z: i32[${place.axes}] out`)
    const write = (scope: Scope): string[] => {
      if (pair) this.#uses.add('tuple')
      if (pair)
        return [
          `(Y[${place.index}], Z[${place.index}]) = (${this.#value(scope, 1)}, ${this.#value(scope, 1)})`,
        ]
      return [`Y[${place.index}] ${op}= ${this.#value(scope, 1)}`]
    }
    if (
      local &&
      place.head.length > 0 &&
      place.kinds[0] === 'S' &&
      place.index[0] === place.head[0] &&
      c.chance(40)
    ) {
      // Each step of the outer iteration has what it needs to itself.
      const [first, ...rest] = place.head
      const outer = names([first!])
      const one = place.axes.split(', ')[0]!
      this.#uses.add('own')
      const inner = { ...place, head: rest, kinds: place.kinds.slice(1) }
      if (place.axes === one)
        return [
          `buffer Y: i32[${one}] local${fill}`,
          `buffer O: i32[${one}] out`,
          `iterate own [${first}] as S${c.chance(40) ? ` where (${this.condition(outer, 2)})` : ''} {`,
          ...this.#around(inner, (scope) => [
            `Y[${place.index}] ${op}= ${this.#value({ ...scope, coords: [...outer.coords, ...scope.coords] }, 1)}`,
          ]).map((l) => `  ${l}`),
          `  O[${place.index}] = Y[${place.index}] + 1`,
          '}',
        ]
    }
    const lines = this.#around(place, write)
    if (c.chance(30) && !pair) {
      // A second writer of what the first left out, and of more.
      this.#uses.add('again')
      const more = this.#around(place, (scope) => [`Y[${place.index}] ${op}= ${this.#value(scope, 1)}`])
      lines.push(...more)
    }
    if (local) {
      const all = place.axes === '' ? [] : place.axes.split(', ')
      decls.push(`buffer O: i32[${place.axes}] out`)
      lines.push(
        `iterate last [${all.join(', ')}]${all.length > 0 ? ` as ${'S'.repeat(all.length)}` : ''} {`,
        `  O[${place.axes}] = Y[${place.axes}] + 1`,
        '}',
      )
    }
    return [...decls, ...lines]
  }
}

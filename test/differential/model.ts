/** Programs as data: what the generator makes, the evaluator computes and `printed` writes as text. */
import { literal, type Type } from './numbers.ts'

/** A size expression: its text and, for the sizes at hand, its value. */
export interface Extent {
  readonly text: string
  readonly value: number
}

export type LevelKind =
  | 'dense_fixed'
  | 'dense_variable'
  | 'run'
  | 'sparse_fixed'
  | 'singleton'
  | 'sparse_variable'
  | 'bitmap'

/** An axis of a chain; the parent is the one before. */
export interface Level {
  readonly axis: string
  readonly kind: LevelKind
  readonly extent: Extent
  /** Of `sparse_fixed`, and 1 of `singleton`. */
  readonly width?: number
  readonly unordered?: boolean
  readonly nonunique?: boolean
}

/** A parent → child chain with the coordinates that are stored on it: its structure. */
export interface Chain {
  readonly levels: readonly Level[]
  readonly stored: readonly (readonly number[])[]
}

/** `gathered(base, list)` or `attached(base, parent)`. */
export type Derived =
  | { readonly kind: 'gathered'; readonly axis: string; readonly base: string; readonly list: string }
  | { readonly kind: 'attached'; readonly axis: string; readonly base: string; readonly parent: string }
  | { readonly kind: 'fused'; readonly axis: string; readonly over: readonly string[] }

export type Role = 'in' | 'out' | 'inout' | 'local'

export interface Buffer {
  readonly name: string
  readonly type: Type
  readonly role: Role
  readonly axes: readonly string[]
  readonly fill?: number
  readonly accumulate?: Type
}

export type Expr =
  | { readonly kind: 'literal'; readonly type: Type; readonly value: number }
  /** A coordinate, a size, a scalar parameter or a `let`. */
  | { readonly kind: 'name'; readonly type: Type; readonly name: string }
  | { readonly kind: 'read'; readonly type: Type; readonly buffer: string; readonly at: readonly Expr[] }
  | { readonly kind: 'cast'; readonly type: Type; readonly of: Expr }
  | { readonly kind: 'unary'; readonly type: Type; readonly op: '-' | 'not'; readonly of: Expr }
  | { readonly kind: 'binary'; readonly type: Type; readonly op: string; readonly a: Expr; readonly b: Expr }
  | { readonly kind: 'call'; readonly type: Type; readonly fn: string; readonly args: readonly Expr[] }

export interface Target {
  readonly buffer: string
  readonly at: readonly Expr[]
}

export type Stmt =
  | { readonly kind: 'let'; readonly name: string; readonly value: Expr }
  | { readonly kind: 'assign'; readonly target: Target; readonly value: Expr }
  /** All values are those from before. */
  | { readonly kind: 'assign_all'; readonly targets: readonly Target[]; readonly values: readonly Expr[] }
  /** `reducer`: an operator or the name of a monoid. */
  | {
      readonly kind: 'reduce'
      readonly reducer: string
      readonly targets: readonly Target[]
      readonly values: readonly Expr[]
    }
  | {
      readonly kind: 'if'
      readonly when: Expr
      readonly then: readonly Stmt[]
      readonly otherwise: readonly Stmt[]
    }
  | Iteration

export interface Iterator {
  readonly name: string
  readonly axis: string
  readonly mode: 'S' | 'R'
}

export interface Iteration {
  readonly kind: 'iterate'
  readonly name: string
  readonly iterators: readonly Iterator[]
  readonly where?: Expr
  readonly body: readonly Stmt[]
}

export interface Program {
  readonly sizes: readonly { readonly name: string; readonly value: number }[]
  readonly scalars: readonly { readonly name: string; readonly type: Type; readonly value: number }[]
  /** Chains of one dense axis among them. */
  readonly chains: readonly Chain[]
  readonly derived: readonly Derived[]
  readonly buffers: readonly Buffer[]
  readonly iterations: readonly Iteration[]
  readonly monoids: readonly Monoid[]
}

/** Values of inputs by buffer, one for each stored coordinate of its axes, in order. */
export type Data = ReadonlyMap<string, readonly number[]>

export interface Monoid {
  readonly name: string
  readonly text: string
  readonly types: readonly Type[]
  readonly identity: readonly number[]
  readonly combine: (a: readonly number[], b: readonly number[]) => readonly number[]
}

const text = (e: Expr): string => {
  switch (e.kind) {
    case 'literal':
      return literal(e.type, e.value)
    case 'name':
      return e.name
    case 'read':
      return `${e.buffer}[${e.at.map(text).join(', ')}]`
    case 'cast':
      return `${e.type}(${text(e.of)})`
    case 'unary':
      return e.op === '-' ? `(-${text(e.of)})` : `(not ${text(e.of)})`
    case 'binary':
      return `(${text(e.a)} ${e.op} ${text(e.b)})`
    case 'call':
      return `${e.fn}(${e.args.map(text).join(', ')})`
  }
}

const target = (t: Target): string => `${t.buffer}[${t.at.map(text).join(', ')}]`

function lines(s: Stmt): string[] {
  const block = (body: readonly Stmt[]): string[] => body.flatMap(lines).map((l) => `  ${l}`)
  switch (s.kind) {
    case 'let':
      return [`let ${s.name} = ${text(s.value)}`]
    case 'assign':
      return [`${target(s.target)} = ${text(s.value)}`]
    case 'assign_all':
      return [`(${s.targets.map(target).join(', ')}) = (${s.values.map(text).join(', ')})`]
    case 'reduce':
      return s.targets.length === 1
        ? [`${target(s.targets[0]!)} ${s.reducer}= ${text(s.values[0]!)}`]
        : [`(${s.targets.map(target).join(', ')}) ${s.reducer}= (${s.values.map(text).join(', ')})`]
    case 'if':
      return [
        `if (${text(s.when)}) {`,
        ...block(s.then),
        ...(s.otherwise.length > 0 ? ['} else {', ...block(s.otherwise)] : []),
        '}',
      ]
    case 'iterate': {
      const its = s.iterators.map((i) => (i.name === i.axis ? i.name : `${i.name} in ${i.axis}`)).join(', ')
      const kinds = s.iterators.map((i) => i.mode).join('')
      const where = s.where ? ` where (${text(s.where)})` : ''
      return [`iterate ${s.name} [${its}]${kinds ? ` as ${kinds}` : ''}${where} {`, ...block(s.body), '}']
    }
  }
}

function declared({ levels }: Chain): string[] {
  return levels.map((l, k) => {
    const args = [
      ...(k > 0 ? [levels[k - 1]!.axis] : []),
      l.extent.text,
      ...(l.kind === 'sparse_fixed' ? [l.width!] : []),
    ]
    const flags = `${l.unordered ? ' unordered' : ''}${l.nonunique && levels[k + 1]?.kind !== 'singleton' ? ' nonunique' : ''}`
    return `axis ${l.axis} = ${l.kind}(${args.join(', ')})${flags}`
  })
}

/** The text of a program, its only kernel called `k`. */
export function printed(p: Program): string {
  const derived = p.derived.map((d) =>
    d.kind === 'fused'
      ? `axis ${d.axis} = fused(${d.over.join(', ')})`
      : `axis ${d.axis} = ${d.kind}(${d.base}, ${d.kind === 'gathered' ? d.list : d.parent})`,
  )
  const buffers = p.buffers.map((b) => {
    const fill = b.fill === undefined ? '' : ` fill ${literal(b.type, b.fill).replace(/[()]/g, '')}`
    const accumulate = b.accumulate ? ` accumulate ${b.accumulate}` : ''
    return `buffer ${b.name}: ${b.type}[${b.axes.join(', ')}] ${b.role}${fill}${accumulate}`
  })
  const params = [...p.sizes.map((s) => `${s.name}: size`), ...p.scalars.map((s) => `${s.name}: ${s.type}`)]
  const body = [...p.chains.flatMap(declared), ...buffers, ...derived, ...p.iterations.flatMap(lines)]
  return [
    ...p.monoids.map((m) => m.text),
    `kernel k(${params.join(', ')}) {`,
    ...body.map((l) => `  ${l}`),
    '}',
    '',
  ].join('\n')
}

/** Repeated members: names that copy k declares end in `_k`, and those of copy n inside of it in `_k_n`. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { mapSyntax } from '../../ast/nodes/walk.ts'
import { report } from '../diagnostics.ts'
import { filled } from '../instructions/instances.ts'
import { iterationsIn } from './callee-members.ts'

/** A copy of members, or the kernel itself. */
export interface Copy {
  /** The end of the names that it declares; empty for the kernel. */
  readonly suffix: string
  /** Names of the kernel by names in the text, of the copy and of copies around it. */
  readonly names: ReadonlyMap<string, string>
  /** Numbers of the copies by their variables. */
  readonly numbers: ReadonlyMap<string, Ast.NumberLit>
}

export const KERNEL: Copy = { suffix: '', names: new Map(), numbers: new Map() }

/** Members with those of rounds, which are names of the kernel, too. */
const withRounds = (members: Ast.Rounds['members']): Ast.Rounds['members'] =>
  members.flatMap((m) => (m.kind === 'rounds' ? [m, ...withRounds(m.members)] : [m]))

/** The number of members after repetition. */
export const countOf = (members: readonly Ast.Member[]): number =>
  withRounds(members).reduce(
    (sum, m) => sum + (m.kind === 'copies' ? m.count.value * (1 + countOf(m.members)) : 1),
    0,
  )

/** The axes, buffers and new results of calls among members. @param isKnown - Whether a result is declared around them */
function declaredIn(list: readonly Ast.Member[], isKnown: (name: string) => boolean): readonly Ast.Ident[] {
  const members = withRounds(list)
  const own = members.flatMap((m) => (m.kind === 'axis' || m.kind === 'buffer' ? m.name : []))
  const results = new Map<string, Ast.Ident>()
  for (const at of members.flatMap((m) => (m.kind === 'kernel_call' ? m.results : [])))
    if (!isKnown(at.name) && own.every((x) => x.name !== at.name)) results.set(at.name, at)
  return [...own, ...results.values()]
}

/** The names that a kernel declares, in all copies, before calls are expanded. Reports names that copies declare again. */
export class DeclaredNames {
  readonly #declared = new Map<string, Ast.Ident>()
  readonly #iterations = new Map<string, Ast.Ident>()
  readonly #labels = new Map<string, Ast.Ident>()
  readonly #results = new Set<string>()
  readonly #kernel: ReadonlySet<string>

  constructor({ params, members }: Ast.Kernel) {
    for (const { name } of params) this.#declared.set(name.name, name)
    this.#kernel = new Set(
      [...this.#declared.values(), ...declaredIn(members, () => false)].map((x) => x.name),
    )
    this.#declare(members, KERNEL)
  }

  has(name: string): boolean {
    return this.#declared.has(name) || this.#iterations.has(name)
  }

  hasLabel(name: string): boolean {
    return this.#labels.has(name)
  }

  /** True for names that only results of calls declare. */
  isResult(name: string): boolean {
    return this.#results.has(name)
  }

  /** The k-th copy of repeated members. */
  copy({ members, index }: Ast.Copies, k: number, { suffix: outer, names, numbers }: Copy): Copy {
    const suffix = `${outer}_${k}`
    const own = declaredIn(members, (name) => names.has(name) || this.#kernel.has(name))
    const number: Ast.NumberLit = { kind: 'number', value: k, float: false, span: index.span }
    return {
      suffix,
      names: new Map([...names, ...own.map(({ name }) => [name, `${name}${suffix}`] as const)]),
      numbers: new Map([...numbers, [index.name, number]]),
    }
  }

  #declare(list: readonly Ast.Member[], copy: Copy): void {
    const members = withRounds(list)
    for (const m of members)
      if (m.kind === 'axis' || m.kind === 'buffer') this.#add(this.#declared, m.name, copy)
      else if (m.kind === 'rounds') this.#add(this.#iterations, m.name, copy)
      else if (m.kind === 'iterate' || m.kind === 'if')
        for (const { name } of iterationsIn(m)) this.#add(this.#iterations, name, copy)
      else if (m.kind === 'kernel_call') {
        if (m.label) this.#add(this.#labels, m.label, copy, 'the label ')
        for (const at of m.results) {
          const name = copy.names.get(at.name) ?? at.name
          if (this.#declared.has(name)) continue
          this.#declared.set(name, at)
          this.#results.add(name)
        }
      }
    for (const m of members)
      if (m.kind === 'copies')
        for (let k = 1; k <= m.count.value; k++) this.#declare(m.members, this.copy(m, k, copy))
  }

  #add(to: Map<string, Ast.Ident>, id: Ast.Ident, { suffix }: Copy, what = ''): void {
    const name = `${id.name}${suffix}`
    const before = to.get(name)
    this.#results.delete(name)
    to.set(name, id)
    // Declarations of the kernel itself are compared where they are elaborated.
    if (
      before &&
      before !== id &&
      (to === this.#labels || (suffix && (to === this.#declared || before.name !== id.name)))
    )
      report('check/duplicate', id.span, {
        message: `${what}${name} is declared twice${suffix ? `, here by a copy of ${id.name}` : ''}`,
        labels: [{ span: before.span, text: 'declared here, too' }],
        hint: 'choose another name',
      })
  }
}

/** Names with another meaning than an axis or a buffer. */
const OTHERS: ReadonlySet<string> = new Set(['fn', 'kernel', 'types', 'type', 'label', 'reducer', 'role'])

/** A member in a copy. */
export function inCopy<M extends Ast.Member>(m: M, { suffix, names, numbers }: Copy): M {
  if (suffix === '') return m
  const go = <T>(part: T): T =>
    mapSyntax(part, (node, key) => {
      if (node.kind === 'iterate' || node.kind === 'rounds_edge') {
        const { kind, name, ...rest } = node as Ast.Iterate | Ast.RoundsEdge
        return { kind, name: { ...name, name: `${name.name}${suffix}` }, ...go(rest) }
      }
      const arg = node as Ast.NamedArg
      if (key === 'args' && node.kind === undefined) return { ...arg, value: go(arg.value) }
      const name = typeof node.name === 'string' && !OTHERS.has(key) ? names.get(node.name) : undefined
      return name === undefined ? undefined : { ...node, name }
    })
  return go(filled(m, numbers))
}

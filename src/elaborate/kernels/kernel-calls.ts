/**
 * Inline expansion of calls of kernels: the members of the callee replace a call, over the caller's axes and buffers.
 * `repeat` copies members, and rounds become members between edges. Later stages receive a kernel without calls.
 */

import type * as Ast from '../../ast/nodes/nodes.ts'
import { copyIteration } from '../../ast/nodes/syntax-builders.ts'
import { mapSyntax } from '../../ast/nodes/walk.ts'
import { errorCount, report } from '../diagnostics.ts'
import { filled } from '../instructions/instances.ts'
import { BufferVersions } from './buffer-versions.ts'
import { type Arguments, argumentsOf } from './call-arguments.ts'
import { axesOf, Unification } from './call-unification.ts'
import { calleeNames, iterationsIn, Renaming } from './callee-members.ts'
import { partsOfRounds, rejectNested } from './rounds.ts'

export const hasCalls = (k: Pick<Ast.Kernel, 'members'>): boolean =>
  k.members.some((m) => m.kind === 'kernel_call' || m.kind === 'copies' || m.kind === 'rounds')

export interface FindCallee {
  /** The kernel of a name, without calls; null after a reported error. `passed`: the buffers among the arguments. */
  kernel(name: Ast.Ident, types: readonly Ast.Ident[], passed: readonly Ast.BufferDecl[]): Ast.Kernel | null
  /** True if a name is a kernel, so that `f(A)` as an argument is a call. */
  isKernel(name: Ast.Ident): boolean
}

/** The members of a kernel with members of callees in place of calls. Reports `check/call` errors. */
export function withCalls(kernel: Ast.Kernel, find: FindCallee): readonly Ast.Member[] {
  const expansion = new Expansion(kernel, find)
  expansion.add(kernel.members)
  return expansion.result()
}

class Expansion {
  readonly #members: Ast.Member[] = []
  readonly #labels = new Set<string>()
  readonly #taken: Set<string>
  readonly #versions = new BufferVersions()
  /** The rounds that are being expanded. */
  #rounds: Ast.Ident | null = null

  constructor(
    kernel: Ast.Kernel,
    private readonly find: FindCallee,
  ) {
    this.#taken = new Set(
      [...kernel.params, ...kernel.members.flatMap(declared)].map(
        (x: { readonly name: Ast.Ident }) => x.name.name,
      ),
    )
  }

  /** Adds members: declarations first, because statements may precede declarations. */
  add(members: readonly Ast.Member[]): void {
    for (const m of members)
      if (m.kind === 'axis' || m.kind === 'buffer') {
        this.#members.push(m)
        if (m.kind === 'buffer' && (m.role.name === 'in' || m.role.name === 'inout'))
          this.#versions.write(m.name.name)
      }
    for (const m of members)
      if (m.kind === 'iterate') this.#members.push(this.#versions.statement(m))
      else if (m.kind === 'kernel_call') this.#call(m)
      else if (m.kind === 'copies') for (let k = 1; k <= m.count.value; k++) this.#copy(m, k)
      else if (m.kind === 'rounds') this.#addRounds(m)
  }

  #addRounds(r: Ast.Rounds): void {
    if (this.#rounds) {
      rejectNested(r.name, this.#rounds)
      return
    }
    const { before, begin, inside, last, end } = partsOfRounds(r, (name) => this.#unused(name))
    this.add(before)
    this.#rounds = r.name
    const latest = this.#versions.snapshot()
    this.#members.push(begin)
    this.add(inside)
    // The next round reads a version of this round under the buffer's own name.
    for (const [name, version] of this.#versions.restore(latest))
      if (!r.members.some((m) => m.kind === 'buffer' && m.name.name === name))
        this.#members.push(copyIteration(this.#unused(`${name}_next`), this.#buffer(name)!, version))
    this.add(last)
    this.#members.push(end)
    this.#rounds = null
  }

  result(): readonly Ast.Member[] {
    return this.#versions.settle(this.#members, (name) => this.#unused(name))
  }

  #buffer(name: string): Ast.BufferDecl | undefined {
    return this.#members.find((m): m is Ast.BufferDecl => m.kind === 'buffer' && m.name.name === name)
  }

  #unused(name: string): string {
    let unused = name
    for (let k = 2; this.#taken.has(unused); k++) unused = `${name}_${k}`
    this.#taken.add(unused)
    return unused
  }

  /** The k-th copy of repeated members: names of the copy's declarations end in `_k`. */
  #copy({ members, index }: Ast.Copies, k: number): void {
    const names = new Map(
      members.flatMap(declared).map(({ name }) => [name.name, this.#unused(`${name.name}_${k}`)]),
    )
    const number: Ast.NumberLit = { kind: 'number', value: k, float: false, span: index.span }
    const renamed = mapSyntax(filled(members, new Map([[index.name, number]])), (node) => {
      const id = node as Partial<Ast.Ident> & typeof node
      const name = typeof id.name === 'string' ? names.get(id.name) : undefined
      return name === undefined ? undefined : { ...id, name }
    })
    const label = (m: Ast.KernelCall): Ast.Ident => ({
      name: `${m.label?.name ?? m.kernel.name}_${k}`,
      span: m.span,
    })
    this.add(renamed.map((m) => (m.kind === 'kernel_call' ? { ...m, label: label(m) } : m)))
  }

  /** Expands a call. Returns the buffer of its first output, or null without outputs and after reported errors. */
  #call(call: Ast.KernelCall): string | null {
    const before = errorCount()
    const args = call.args.map((a) => ({ ...a, value: this.#argument(a.value) }))
    if (errorCount() > before) return null
    const buffers = args.flatMap(({ value }) => (value.kind === 'name' && this.#latest(value.name)) || [])
    const callee = this.find.kernel(call.kernel, call.types, buffers)
    const given = callee && argumentsOf(callee, { ...call, args })
    if (!given) return null
    const u = new Unification(callee, axesOf(this.#members), given.values)
    const passed = this.#inputs(callee, given.inputs, u)
    checkUpdates(callee, passed, call.span)
    if (errorCount() > before) return null
    const label = this.#label(call.label?.name ?? call.kernel.name)
    /** Outputs that get a buffer under a new name. */
    const named = new Map<string, string>()
    for (const { own, at } of given.outputs) {
      const target = this.#target(at, own, [...passed.values()])
      if (typeof target === 'string') named.set(own.name.name, target)
      else if (target && u.pass(own, target, at.span)) passed.set(own.name.name, target.name.name)
    }
    if (errorCount() > before || !u.settle(call.span)) return null
    const names = calleeNames(
      callee,
      { axes: u.axes, buffers: new Map([...passed, ...named]) },
      (own) => this.#unused(`${label}_${own}`),
      (own) => this.#taken.has(own),
    )
    const rename = new Renaming(callee, names, u.values)
    for (const m of callee.members)
      if (m.kind === 'iterate') this.#members.push(rename.iterate(m))
      else if (m.kind === 'axis' && !u.axes.has(m.name.name)) this.#members.push(rename.axis(m))
      else if (m.kind === 'buffer' && !passed.has(m.name.name))
        this.#members.push({ ...rename.buffer(m), role: { ...m.role, name: 'local' } })
      else if (m.kind === 'rounds_edge') {
        if (this.#rounds && m.edge === 'begin') rejectNested(m.name, this.#rounds)
        this.#members.push(rename.edge(m, `${label}_${m.name.name}`))
      }
    for (const buffer of names.buffers.values()) this.#versions.write(buffer)
    const [output] = callee.members.filter((m) => m.kind === 'buffer').filter((b) => b.role.name === 'out')
    return output ? names.buffers.get(output.name.name)! : null
  }

  #latest(name: string): Ast.BufferDecl | undefined {
    return this.#buffer(this.#versions.latest(name))
  }

  /** Passes inputs. Returns the caller's buffers by the callee's names. */
  #inputs(callee: Ast.Kernel, inputs: Arguments['inputs'], u: Unification): Map<string, string> {
    const passed = new Map<string, string>()
    for (const { own, at } of inputs) {
      const other = this.#latest(at.name)
      if (!other) this.#unknownBuffer(at)
      else if (own.role.name === 'inout' && other.role.name === 'in')
        report('check/call', at.span, {
          message: `${at.name} is an input, and kernel ${callee.name.name} updates ${own.name.name}`,
          labels: [{ span: other.span, text: `${at.name} is declared here` }],
          hint: `give ${at.name} the role \`inout\``,
        })
      else if (u.pass(own, other, at.span)) passed.set(own.name.name, other.name.name)
    }
    return passed
  }

  #label(name: string): string {
    let label = name
    for (let k = 2; this.#labels.has(label); k++) label = `${name}_${k}`
    this.#labels.add(label)
    return label
  }

  /** An argument: a call of a kernel becomes the buffer of the output. */
  #argument(e: Ast.Expr): Ast.Expr {
    if (e.kind !== 'call' || e.by || e.parts || !this.find.isKernel(e.fn)) return e
    const before = errorCount()
    const args = e.args.map((value) => ({ name: null, value, span: value.span }))
    const name = this.#call({
      kind: 'kernel_call',
      kernel: e.fn,
      types: [],
      args,
      results: [],
      label: null,
      span: e.span,
    })
    if (name === null && errorCount() === before)
      report('check/call', e.span, {
        message: `kernel ${e.fn.name} has no output`,
        hint: 'call the kernel in a line of its own',
      })
    return { kind: 'name', name: name ?? '', span: e.span }
  }

  #unknownBuffer(at: Ast.Ident): null {
    const candidates = this.#members.flatMap((m) => (m.kind === 'buffer' ? [m.name.name] : []))
    return report('check/unknown-buffer', at.span, {
      message: `there is no buffer ${at.name}`,
      lookup: { name: at.name, candidates },
    })
  }

  /** The buffer that an output is written to: a declared buffer, or the name of a new buffer. Null after a reported error. */
  #target(at: Ast.Ident, own: Ast.BufferDecl, inputs: readonly string[]): Ast.BufferDecl | string | null {
    const declared = this.#buffer(at.name)
    if (!declared) {
      if (this.#taken.has(at.name))
        return report('check/call', at.span, {
          message: `${at.name} is not a buffer`,
          expected: `a buffer, or a new name for ${own.name.name}`,
        })
      this.#taken.add(at.name)
      return at.name
    }
    if (declared.role.name === 'in')
      return report('check/input-written', at.span, {
        message: `${at.name} is an input and cannot be written`,
        labels: [{ span: declared.span, text: 'declared here' }],
        hint: `give ${at.name} the role \`inout\`, or write another buffer`,
      })
    if (!this.#versions.hasValue(at.name) && !inputs.includes(at.name)) return declared
    // An assignment gives the buffer a new value: earlier values stay where earlier statements read them.
    const name = this.#versions.add(at.name, (version) => this.#unused(version))
    const version: Ast.BufferDecl = {
      ...declared,
      name: { ...at, name },
      role: { ...declared.role, name: 'local' },
    }
    this.#members.push(version)
    return version
  }
}

const isMember = (m: Ast.Member | Ast.Stmt): m is Ast.Member =>
  m.kind !== 'assign' && m.kind !== 'reduce' && m.kind !== 'let' && m.kind !== 'if'

/** The declarations in a member that need an unused name. */
function declared(m: Ast.Member): readonly { readonly name: Ast.Ident }[] {
  if (m.kind === 'iterate') return iterationsIn(m)
  if (m.kind === 'rounds')
    return [m, ...m.members.flatMap((x) => (isMember(x) ? declared(x) : iterationsIn(x)))]
  return m.kind === 'axis' || m.kind === 'buffer' ? [m] : []
}

/** Rejects a buffer that a callee updates and has under another name, too: the order of reads and updates would matter. */
function checkUpdates(
  callee: Ast.Kernel,
  passed: ReadonlyMap<string, string>,
  span: Ast.Kernel['span'],
): void {
  for (const m of callee.members) {
    if (m.kind !== 'buffer' || m.role.name !== 'inout') continue
    const name = passed.get(m.name.name)
    const twice = [...passed].find(([own, other]) => other === name && own !== m.name.name)
    if (twice)
      report('check/call', span, {
        message: `${name} is passed for ${twice[0]} and for ${m.name.name}, which kernel ${callee.name.name} updates`,
        labels: [{ span: m.span, text: 'declared here' }],
        hint: `copy ${name} into a local buffer, and pass the copy`,
      })
  }
}

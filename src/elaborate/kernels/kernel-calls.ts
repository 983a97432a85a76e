/**
 * Inline expansion of calls of kernels: the members of the callee replace a call, over the caller's axes and buffers.
 * `repeat` copies members, and rounds become members between edges. Later stages receive a kernel without calls.
 */

import { type Span, spanInCall } from '../../ast/diagnostics/span.ts'
import { callInCall, type ExpandedCall } from '../../ast/nodes/expanded-calls.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { copyIteration } from '../../ast/nodes/syntax-builders.ts'
import { mapSyntax } from '../../ast/nodes/walk.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { getOrAdd } from '../../ir/memoize.ts'
import { errorCount, report } from '../diagnostics.ts'
import { BufferVersions } from './buffer-versions.ts'
import { type Arguments, argumentsOf, checkUpdates } from './call-arguments.ts'
import { Unification } from './call-unification.ts'
import { type CalleeNames, calleeNames, Renaming } from './callee-members.ts'
import { inputWritten, unknownBuffer } from './kernel-names.ts'
import { type Copy, countOf, DeclaredNames, inCopy, KERNEL } from './repeated-members.ts'
import { partsOfRounds, rejectNested } from './rounds.ts'

export const hasCalls = (k: Pick<Ast.Kernel, 'members'>): boolean =>
  k.members.some((m) => m.kind === 'kernel_call' || m.kind === 'copies' || m.kind === 'rounds')

export interface FindCallee {
  /** The kernel of a name, without calls; null after a reported error. `passed`: the buffers among the arguments. */
  kernel(name: Ast.Ident, types: readonly Ast.Ident[], passed: readonly Ast.BufferDecl[]): Ast.Kernel | null
  /** True if a name is a kernel, so that `f(A)` as an argument is a call. */
  isKernel(name: Ast.Ident): boolean
}

/** The members of a kernel with members of callees in place of calls, and the calls. Reports `check/call` errors. */
export function withCalls(kernel: Ast.Kernel, find: FindCallee): Pick<Ast.Kernel, 'members' | 'calls'> {
  return new Expansion(kernel, find).result()
}

/** Most members of a kernel after expansion. */
const MAX_MEMBERS = 10_000

class Expansion {
  readonly #members: Ast.Member[] = []
  readonly #buffers = new Map<string, Ast.BufferDecl>()
  readonly #axes = new Map<string, Ast.AxisDecl>()
  readonly #labels = new Set<string>()
  /** How often a name was made unused. */
  readonly #uses = new Map<string, number>()
  readonly #made = new Set<string>()
  readonly #versions = new BufferVersions()
  readonly #names: DeclaredNames
  readonly #calls: ExpandedCall[] = []
  #suffix = ''
  /** The rounds that are being expanded. */
  #rounds: Ast.Ident | null = null

  constructor(
    private readonly kernel: Ast.Kernel,
    private readonly find: FindCallee,
  ) {
    const isTooLong = countOf(kernel.members) > MAX_MEMBERS
    const members = isTooLong ? [] : kernel.members
    this.#names = new DeclaredNames({ ...kernel, members })
    if (isTooLong) this.#tooMany(kernel.members.find((m) => m.kind === 'copies')!.span)
    else this.#add(members, KERNEL)
  }

  /** Adds members: declarations first, because statements may precede declarations. */
  #add(members: readonly Ast.Member[], copy: Copy): void {
    for (const m of members)
      if (m.kind === 'axis' || m.kind === 'buffer') {
        const own = inCopy(m, copy)
        this.#push(own)
        if (own.kind === 'buffer' && (own.role.name === 'in' || own.role.name === 'inout'))
          this.#versions.write(own.name.name)
      }
    const before = errorCount()
    for (const m of members)
      if (m.kind === 'iterate') this.#push(this.#versions.statement(inCopy(m, copy)))
      else if (m.kind === 'kernel_call') {
        this.#suffix = copy.suffix
        this.#call(inCopy(m, copy))
      } else if (m.kind === 'rounds') this.#addRounds(m, copy)
      else if (m.kind === 'copies')
        for (let k = 1; k <= m.count.value && errorCount() === before; k++)
          this.#add(m.members, this.#names.copy(m, k, copy))
  }

  #addRounds(r: Ast.Rounds, copy: Copy): void {
    if (this.#rounds) {
      rejectNested(r.name, this.#rounds)
      return
    }
    const { before, edge, inside, last } = partsOfRounds(r, (name) => this.#unused(name))
    this.#add(before, copy)
    this.#rounds = r.name
    const latest = this.#versions.snapshot()
    const begin = this.#members.length
    this.#add(inside, copy)
    // The next round reads a version of this round under the buffer's own name.
    const own = this.#members.slice(begin).flatMap((m) => (m.kind === 'buffer' ? m.name : []))
    for (const [name, version] of this.#versions.restore(latest))
      if (!own.some((b) => b.name === name))
        this.#push(copyIteration(this.#unused(`${name}_next`), this.#buffers.get(name)!, version))
    this.#add(last, copy)
    this.#members.splice(begin, 0, inCopy({ ...edge, edge: 'begin', own }, copy))
    this.#push(inCopy({ ...edge, edge: 'end', own }, copy))
    this.#rounds = null
  }

  result(): Pick<Ast.Kernel, 'members' | 'calls'> {
    const { members, nameOf } = this.#versions.settle(this.#members, (name) => this.#unused(name))
    const settled = (call: ExpandedCall): ExpandedCall => ({
      ...call,
      buffers: new Map([...call.buffers].map(([own, name]) => [own, nameOf(name)])),
      calls: call.calls.map(settled),
    })
    return { members, calls: this.#calls.map(settled) }
  }

  #push(m: Ast.Member): void {
    this.#members.push(m)
    if (m.kind === 'buffer') this.#buffers.set(m.name.name, m)
    if (m.kind === 'axis') this.#axes.set(m.name.name, m)
  }

  #isTaken(name: string): boolean {
    return this.#names.has(name) || this.#made.has(name)
  }

  #unused(name: string): string {
    const isFree = (x: string): boolean => !this.#isTaken(x)
    const unused = this.#numbered(name, '', isFree)
    this.#made.add(unused)
    return unused
  }

  /** The first free name of `NAME`, `NAME_2`, …, each with an ending. */
  #numbered(name: string, ending: string, isFree: (name: string) => boolean): string {
    const base = `${name}${ending}`
    let k = this.#uses.get(base) ?? 1
    const numbered = (): string => (k === 1 ? base : `${name}_${k}${ending}`)
    while (!isFree(numbered())) k++
    this.#uses.set(base, k)
    return numbered()
  }

  #tooMany(span: Span): null {
    return report('check/too-many-members', span, {
      message: `kernel ${this.kernel.name.name} has more than ${MAX_MEMBERS} members after calls and repetitions`,
      expected: `at most ${MAX_MEMBERS}`,
      hint: 'repeat fewer members, or build several kernels',
    })
  }

  /** Expands a call. Returns its outputs with their buffers, or null after reported errors. */
  #call(call: Ast.KernelCall): readonly Ast.BufferDecl[] | null {
    const before = errorCount()
    if (this.#members.length > MAX_MEMBERS) return this.#tooMany(call.span)
    const args = call.args.map((a) => ({ ...a, value: this.#argument(a.value) }))
    if (errorCount() > before) return null
    const buffers = args.flatMap(({ value }) => (value.kind === 'name' && this.#latest(value.name)) || [])
    const callee = this.find.kernel(call.kernel, call.types, buffers)
    const given =
      callee && argumentsOf(callee, this.kernel.params, { ...call, args }, (name) => this.#buffers.has(name))
    if (!given) return null
    const u = new Unification(callee, this.#axes, given.values)
    const passed = this.#inputs(callee, given.inputs, u)
    checkUpdates(callee, passed, call.span)
    if (errorCount() > before) return null
    const label = this.#label(call)
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
      (own) => this.#isTaken(own),
    )
    const rename = new Renaming(callee, names, u.values)
    const spans = new Map<Span, Span>()
    const place = (span: Span): Span => getOrAdd(spans, span, () => spanInCall(span, call.span))
    const push = (m: Ast.Member): void =>
      this.#push(
        mapSyntax(m, (x, key) => (key === 'span' ? place(x as Span) : undefined), new Set(['trivia'])),
      )
    for (const m of callee.members)
      if (m.kind === 'iterate') push(rename.iterate(m))
      else if (m.kind === 'axis' && !u.axes.has(m.name.name)) push(rename.axis(m))
      else if (m.kind === 'buffer' && !passed.has(m.name.name))
        push({ ...rename.buffer(m), role: { ...m.role, name: 'local' } })
      else if (m.kind === 'rounds_edge') {
        if (this.#rounds && m.edge === 'begin') rejectNested(m.name, this.#rounds)
        push(rename.edge(m, `${label}_${m.name.name}`))
      }
    for (const buffer of names.buffers.values()) this.#versions.write(buffer)
    this.#record(call, callee, label, names, u.values)
    return callee.members.flatMap((m) =>
      m.kind === 'buffer' && m.role.name === 'out' ? this.#buffers.get(names.buffers.get(m.name.name)!)! : [],
    )
  }

  #record(
    { span, label }: Ast.KernelCall,
    callee: Ast.Kernel,
    prefix: string,
    { locals: iterators, ...names }: CalleeNames,
    values: ReadonlyMap<string, Ast.Expr>,
  ): void {
    const sizes = new Map(
      [...values].map(([name, e]) => [
        name,
        e.kind === 'name' ? e.name : e.kind === 'number' ? e.value : null,
      ]),
    )
    const copies = this.#suffix.split('_').slice(1).map(Number)
    const own = { label: label?.name ?? prefix.slice(0, prefix.length - this.#suffix.length), copies, prefix }
    const call = { ...own, callee: { name: callee.name.name, span: callee.span }, span }
    const outer: ExpandedCall = { ...call, ...names, iterators, sizes, calls: [] }
    this.#calls.push({ ...outer, calls: (callee.calls ?? []).map((c) => callInCall(c, outer)) })
  }

  #latest(name: string): Ast.BufferDecl | undefined {
    return this.#buffers.get(this.#versions.latest(name))
  }

  /** Passes inputs. Returns the caller's buffers by the callee's names. */
  #inputs(callee: Ast.Kernel, inputs: Arguments['inputs'], u: Unification): Map<string, string> {
    const passed = new Map<string, string>()
    for (const { own, at } of inputs) {
      const other = this.#latest(at.name)
      if (!other) unknownBuffer(at, this.#buffers)
      else if (own.role.name === 'inout' && other.role.name === 'in')
        report('check/call', at.span, {
          message: `${at.name} is an input, and kernel ${callee.name.name} updates ${own.name.name}`,
          labels: [{ span: other.span, text: `${at.name} is declared here` }],
          hint: `give ${at.name} the role \`inout\``,
        })
      else if (own.role.name === 'in' && !this.#rounds && !this.#versions.hasValue(other.name.name))
        report('check/read-before-write', at.span, {
          message: `${at.name} is read before the first write`,
          labels: [{ span: other.span, text: `${at.name} is declared here` }],
          hint: `write ${at.name} in an earlier statement`,
        })
      else if (u.pass(own, other, at.span)) passed.set(own.name.name, other.name.name)
    }
    return passed
  }

  /** The prefix of the names of a call: its label, or the name of the kernel with a number. */
  #label({ label, kernel }: Ast.KernelCall): string {
    if (label) return `${label.name}${this.#suffix}`
    const isFree = (x: string): boolean => !this.#labels.has(x) && !this.#names.hasLabel(x)
    const free = this.#numbered(kernel.name, this.#suffix, isFree)
    this.#labels.add(free)
    return free
  }

  /** An argument: a call of a kernel becomes the buffer of the output. */
  #argument(e: Ast.Expr): Ast.Expr {
    if (e.kind !== 'call' || e.by || e.parts || !this.find.isKernel(e.fn)) return e
    const args = e.args.map((value) => ({ name: null, value, span: value.span }))
    const outputs = this.#call({
      kind: 'kernel_call',
      kernel: e.fn,
      types: [],
      args,
      results: [],
      label: null,
      span: e.span,
    })
    if (outputs && outputs.length !== 1)
      report('check/call', e.span, {
        message: `kernel ${e.fn.name} has ${outputs.length === 0 ? 'no output' : quantity(outputs.length, 'output')}`,
        expected: 'a kernel with one output in the place of an input',
        hint: 'call the kernel in a line of its own',
      })
    return { kind: 'name', name: outputs?.[0]?.name.name ?? '', span: e.span }
  }

  /** The buffer that an output is written to: a declared buffer, or the name of a new buffer. Null after a reported error. */
  #target(at: Ast.Ident, own: Ast.BufferDecl, inputs: readonly string[]): Ast.BufferDecl | string | null {
    const declared = this.#buffers.get(at.name)
    if (!declared) {
      if (this.#isTaken(at.name) && !this.#names.isResult(at.name))
        return report('check/call', at.span, {
          message: `${at.name} is not a buffer`,
          expected: `a buffer, or a new name for ${own.name.name}`,
        })
      return at.name
    }
    if (declared.role.name === 'in') return inputWritten(at, declared.span)
    if (!this.#versions.hasValue(at.name) && !inputs.includes(at.name)) return declared
    // An assignment gives the buffer a new value: earlier values stay where earlier statements read them.
    const name = this.#versions.add(at.name, (version) => this.#unused(version))
    const version: Ast.BufferDecl = {
      ...declared,
      name: { ...at, name },
      role: { ...declared.role, name: 'local' },
    }
    this.#push(version)
    return version
  }
}

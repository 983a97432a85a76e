/** Inline expansion of a kernel's definitions: `define mask(q, k) = k <= q` replaces each call of `mask`. */
import { orList } from '../../ast/diagnostics/suggest.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type AnyNode, mapSyntax, namesIn, walkSyntax } from '../../ast/nodes/walk.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { report, reportAll } from '../diagnostics.ts'
import { FUNCTIONS } from '../expressions/expressions.ts'
import { filled } from '../instructions/instances.ts'

export const isDefine = (m: Ast.Member): m is Ast.Define => m.kind === 'define'

/** Merges definitions of a base kernel and of a derived kernel, whose definitions replace definitions of the base. */
export function mergedDefinitions(
  kernel: Ast.Kernel,
  base: readonly Ast.Define[] | null,
): readonly Ast.Define[] {
  const merged = new Map((base ?? []).map((d) => [d.name.name, d]))
  const own = new Map<string, Ast.Define>()
  for (const d of kernel.members.filter(isDefine)) {
    const { name, span } = d.name
    const first = own.get(name)
    const inherited = merged.get(name)
    const wrong = { code: 'check/definition', span }
    if (first || FUNCTIONS.includes(name))
      reportAll({
        ...wrong,
        message: first ? `${name} is defined twice` : `${name} is a function of the language`,
        ...(first && { labels: [{ span: first.name.span, text: 'first here' }] }),
        hint: 'choose another name for the definition',
      })
    else if (inherited && inherited.params.length !== d.params.length)
      reportAll({
        ...wrong,
        message: `${name} of kernel ${kernel.base!.name.name} has ${quantity(inherited.params.length, 'parameter')}`,
        labels: [{ span: inherited.name.span, text: 'defined here' }],
        expected: `define ${name}(${inherited.params.map((p) => p.name).join(', ')}) = …`,
      })
    else if (base && !inherited && !isCalled(name, kernel))
      reportAll({
        ...wrong,
        message: `kernel ${kernel.base!.name.name} has no definition ${name}, and nothing in kernel ${kernel.name.name} calls ${name}`,
        ...(base.length > 0 && { expected: orList(base.map((b) => b.name.name)) }),
        lookup: { name, candidates: base.map((b) => b.name.name) },
        hint: `override a definition of the base, call ${name}, or remove it`,
      })
    else merged.set(name, d)
    own.set(name, d)
  }
  return base ? calleesFirst(merged) : [...merged.values()]
}

/**
 * Definitions in their order, but each after those that it calls: a definition that replaces one of the base may call the
 * kernel's own.
 */
function calleesFirst(definitions: ReadonlyMap<string, Ast.Define>): readonly Ast.Define[] {
  const ordered = new Set<Ast.Define>()
  const visited = new Set<Ast.Define>()
  const place = (d: Ast.Define): void => {
    if (visited.has(d)) return
    visited.add(d)
    walkSyntax(d.value, (node) => {
      const callee = calledName(node)
      const called = callee === null ? undefined : definitions.get(callee)
      if (called) place(called)
    })
    ordered.add(d)
  }
  for (const d of definitions.values()) place(d)
  return [...ordered]
}

/** The definition or function that a node calls; null for other nodes. */
const calledName = (node: AnyNode): string | null => {
  const call = node as Ast.Call
  return call.kind === 'call' && !call.by ? call.fn.name : null
}

/** True if a member of the kernel's own text calls a definition, other than the definition itself. */
function isCalled(name: string, { members }: Ast.Kernel): boolean {
  let found = false
  for (const m of members)
    if (!(isDefine(m) && m.name.name === name))
      walkSyntax(m, (node) => {
        found ||= calledName(node) === name
      })
  return found
}

/**
 * The members with definitions in place of their calls. A definition may use parameters, earlier definitions, and the
 * kernel's parameters and buffers: names of iterators and `let`s would depend on the place of the call.
 */
export function withDefinitions(
  members: readonly Ast.Member[],
  definitions: readonly Ast.Define[],
  params: readonly Ast.Param[],
): readonly Ast.Member[] {
  if (definitions.length === 0) return members
  const known = new Map<string, Ast.Define>()
  const expand = <T>(part: T): T => mapSyntax(part, expanded)
  const expanded = (node: AnyNode): unknown => {
    const call = node as Ast.Call
    const definition = call.kind === 'call' && !call.by ? known.get(call.fn.name) : undefined
    if (!definition) return undefined
    const args = call.args.map((a) => expand(a))
    const names = definition.params.map((p) => p.name)
    if (args.length === names.length)
      return filled(definition.value, new Map(names.map((n, k) => [n, args[k]!])))
    report('check/definition', call.span, {
      message: `${call.fn.name} needs ${quantity(names.length, 'argument')}, and has ${args.length}`,
      labels: [{ span: definition.name.span, text: 'defined here' }],
      expected: `${call.fn.name}(${names.join(', ')})`,
    })
    return node
  }
  for (const d of definitions) {
    const visible = [...d.params, ...params.map((p) => p.name)].map((n) => n.name)
    for (const { name, span } of namesIn(d.value))
      if (!visible.includes(name))
        report('check/definition', span, {
          message: `definition ${d.name.name} cannot use ${name}`,
          expected: `parameters of the definition or of the kernel: ${visible.join(', ')}`,
          hint: `pass ${name} as an argument`,
        })
    known.set(d.name.name, { ...d, value: expand(d.value) })
  }
  return members.map(expand)
}

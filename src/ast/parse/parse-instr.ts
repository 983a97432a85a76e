/** Memories and instructions: parse actions for the grammar. */

import * as ast from '../nodes/nodes.ts'
import { INSTR_TEXTS } from '../nodes/nodes-instr.ts'
import { type Option, option, typeName } from './checks.ts'
import {
  type Actions,
  all,
  blockItem,
  codeOf,
  get,
  item,
  list,
  maybe,
  maybeList,
  slotsOf,
  spanOf,
  word,
} from './parse-context.ts'

/** A scalar type, or the name of a type parameter. */
function elementType(id: ast.Ident, params: readonly ast.TileParam[]): ast.Ident {
  const typeParams = params.flatMap((p) => (p.types ? [p.name.name] : []))
  return typeName<string>(id, [...ast.SCALAR_TYPES, ...typeParams])
}

export const instructions: Actions = {
  Memory(
    _,
    name,
    params,
    _c,
    type,
    _o,
    shape,
    _e,
    _in,
    scope,
    threads,
    replicated,
    aligned,
    open,
    items,
    close,
  ) {
    const body = all<ast.MemoryItem>(items)
    const ownParams = maybeList<ast.TileParam>(params)
    const node: ast.Memory = {
      kind: 'memory',
      name: get(name),
      params: ownParams,
      type: elementType(get(type), ownParams),
      shape: list(shape),
      scope: get(scope),
      threads: maybe(threads),
      aligned: maybe(aligned),
      replicated: replicated.children.length > 0,
      items: body,
      span: spanOf(this),
    }
    return blockItem(node, { open, close }, slotsOf(body))
  },
  TileParams: (_, params, _close) => list(params),
  InstrParams: (params, _) => get(params),
  TileParam(name, _, types): ast.TileParam {
    const ids = types.children[0] ? list<ast.Ident>(types.children[0]) : null
    const typeNames = ids?.map((t) => typeName(t, ast.SCALAR_TYPES)) ?? null
    return { name: get(name), types: typeNames, span: spanOf(this) }
  },
  Limit(_, cond) {
    return item<ast.Limit>({ kind: 'limit', cond: get(cond), span: spanOf(this) })
  },
  Examples(_, examples) {
    return item<ast.Examples>({ kind: 'examples', of: list(examples), span: spanOf(this) })
  },
  Instance(name, args): ast.Instance {
    return { name: get(name), args: maybeList(args), span: spanOf(this) }
  },
  MemoryThreads: (_, count, _threads) => get(count),
  Aligned: (_, bytes) => get(bytes),
  MemoryItem: (node, _) => get(node),
  ElementMap(_, _open, lane, _comma, slot, _close, _arrow, _open2, to, _close2) {
    const names = { lane: get<ast.Ident>(lane), slot: get<ast.Ident>(slot) }
    return item<ast.ElementMap>({ kind: 'element', ...names, to: list(to), span: spanOf(this) })
  },
  AddressMap(_, from, _arrow, to) {
    return item<ast.AddressMap>({ kind: 'address', from: get(from), to: get(to), span: spanOf(this) })
  },
  MemoryText(fill, target, needs, code) {
    const what = fill.children.length > 0 ? ('fill' as const) : ('type' as const)
    return item<ast.MemoryText>({
      kind: 'text',
      what,
      target: get(target),
      needs: maybe<readonly ast.Need[]>(needs) ?? [],
      code: codeOf(code),
      span: spanOf(this),
    })
  },
  Needs: (_, needs) => list(needs),
  Need(name, args): ast.Need {
    return { name: get(name), args: maybe<readonly string[]>(args) ?? [], span: spanOf(this) }
  },
  NeedArgs: (_, args, _close) => args.asIteration().children.map((c) => c.sourceString),
  Instr(_, name, params, _open, operands, _close, threads, words, open, items, close) {
    const body = all<ast.InstrItem>(items)
    const ownParams = maybeList<ast.TileParam>(params)
    const operandNodes = list<ast.Operand>(operands)
    for (const o of operandNodes) elementType(o.type, ownParams)
    const node: ast.Instr = {
      kind: 'instr',
      name: get(name),
      params: ownParams,
      operands: operandNodes,
      threads: maybe(threads),
      words: words.children.map(word),
      items: body,
      span: spanOf(this),
    }
    return blockItem(node, { open, close }, slotsOf(body))
  },
  InstrThreads: (_, count, _threads) => get(count),
  Mapped: (_, swizzle): ast.Mapped => ({ swizzle: maybe(swizzle) }),
  Swizzle: (_, bytes) => get(bytes),
  Ascending: (_, count) => get(count),
  OperandOption_packed: (bits): Option => ({ key: 'packed', value: get(bits), span: spanOf(bits) }),
  OperandOption_aligned: (bytes): Option => ({ key: 'aligned', value: get(bytes), span: spanOf(bytes) }),
  OperandOption_ascending: (count): Option => ({ key: 'ascending', value: get(count), span: spanOf(count) }),
  OperandOption_mapped: (box): Option => ({ key: 'mapped', value: get(box), span: spanOf(box) }),
  OperandOption_fenced: (word): Option => ({ key: 'fenced', value: true, span: spanOf(word) }),
  Operand(name, _colon, type, _open, shape, _close, _in, memories, options): ast.Operand {
    const operandOptions = all<Option>(options)
    return {
      name: get(name),
      type: get(type),
      shape: list(shape),
      memories: list(memories),
      packed: option(operandOptions, 'packed'),
      aligned: option(operandOptions, 'aligned'),
      ascending: option(operandOptions, 'ascending'),
      mapped: option(operandOptions, 'mapped'),
      fenced: option(operandOptions, 'fenced') ?? false,
      span: spanOf(this),
    }
  },
  InstrItem: (node, _) => get(node),
  Precision(_, bits, _bits) {
    return item<ast.Precision>({ kind: 'precision', bits: get(bits), span: spanOf(this) })
  },
  InstrText(what, target, _from, version, needs, code) {
    const kind = what.children[0]?.sourceString
    const from = version.children[0]?.sourceString
    return item<ast.InstrText>({
      kind: 'text',
      what: INSTR_TEXTS.find((w) => w === kind) ?? 'run',
      target: get(target),
      from: from === undefined ? null : Number(from),
      needs: maybe<readonly ast.Need[]>(needs) ?? [],
      code: codeOf(code),
      span: spanOf(this),
    })
  },
}

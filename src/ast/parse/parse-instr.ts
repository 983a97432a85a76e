/** Memories and instructions: parse actions for the grammar. */
import * as ast from '../nodes/nodes.ts'
import { INSTR_TEXTS } from '../nodes/nodes-instr.ts'
import { type Option, option, typeName } from './checks.ts'
import { type Actions, checked, get, getList, item, line, part, spanOf, word } from './parse-context.ts'

/** Checks for a scalar type, or the name of a type parameter. */
function checkType(id: ast.Ident, params: readonly ast.TileParam[]): void {
  const typeParams = params.flatMap((p) => (p.types ? [p.name.name] : []))
  typeName<string>(id, [...ast.SCALAR_TYPES, ...typeParams])
}

export const instructions: Actions = {
  Memory: checked(
    line<ast.Memory>(
      'memory',
      ...(['', 'name', 'params*', '', 'type', '', 'shape', '', '', 'scope'] as const),
      ...(['threads', 'replicated?', 'aligned', '{items}'] as const),
    ),
    ({ type, params }: ast.Memory) => checkType(type, params),
  ),
  TileParam: part<ast.TileParam>(null, 'name', '', 'types'),
  Limit: line<ast.Limit>('limit', '', 'cond'),
  Examples: line<ast.Examples>('examples', '', 'of'),
  Instance: part<ast.Instance>(null, 'name', 'args*'),
  ElementMap: line<ast.ElementMap>('element', '', '', 'lane', '', 'slot', '', '', '', 'to', ''),
  AddressMap: line<ast.AddressMap>('address', '', 'from', '', 'to'),
  MemoryText(fill, target, needs, code) {
    return item<ast.MemoryText>({
      kind: 'text',
      what: fill.children.length > 0 ? 'fill' : 'type',
      target: get(target),
      needs: getList(needs),
      code: get(code),
      span: spanOf(this),
    })
  },
  Need: part<ast.Need>(null, 'name', 'args*'),
  needArg(_) {
    return this.sourceString
  },
  instrWord(_) {
    return word(this)
  },
  Instr: checked(
    line<ast.Instr>(
      'instr',
      ...(['', 'name', 'params*', '', 'operands', '', 'threads', 'words', '{items}'] as const),
    ),
    ({ operands, params }: ast.Instr) => {
      for (const o of operands) checkType(o.type, params)
    },
  ),
  Mapped: (_, swizzle): ast.Mapped => ({ swizzle: get(swizzle) }),
  OperandOption_packed: (bits): Option => ({ key: 'packed', value: get(bits), span: spanOf(bits) }),
  OperandOption_aligned: (bytes): Option => ({ key: 'aligned', value: get(bytes), span: spanOf(bytes) }),
  OperandOption_ascending: (count): Option => ({ key: 'ascending', value: get(count), span: spanOf(count) }),
  OperandOption_mapped: (box): Option => ({ key: 'mapped', value: get(box), span: spanOf(box) }),
  OperandOption_fenced: (given): Option => ({ key: 'fenced', value: true, span: spanOf(given) }),
  Operand(name, _colon, type, _open, shape, _close, _in, memories, options): ast.Operand {
    const operandOptions = get<Option[]>(options)
    return {
      name: get(name),
      type: get(type),
      shape: get(shape),
      memories: get(memories),
      packed: option(operandOptions, 'packed'),
      aligned: option(operandOptions, 'aligned'),
      ascending: option(operandOptions, 'ascending'),
      mapped: option(operandOptions, 'mapped'),
      fenced: option(operandOptions, 'fenced') ?? false,
      span: spanOf(this),
    }
  },
  Precision: line<ast.Precision>('precision', '', 'bits', ''),
  InstrText(what, target, _from, version, needs, code) {
    const kind = what.children[0]?.sourceString
    const from = version.children[0]?.sourceString
    return item<ast.InstrText>({
      kind: 'text',
      what: INSTR_TEXTS.find((w) => w === kind) ?? 'run',
      target: get(target),
      from: from === undefined ? null : Number(from),
      needs: getList(needs),
      code: get(code),
      span: spanOf(this),
    })
  },
}

/** C11. Values of half types are f32 in registers and 16 bits in memory. */
import { isBeyondF32, isFloat, isHalf, isInt } from '../../../ir/values/dtype.ts'
import { SERIAL_THREADS, type Spellings } from '../../print/spellings.ts'
import {
  C_FAMILY,
  C_SYMBOL,
  floorMod,
  LIBRARY_MATH,
  libraryCall,
  literalPrinter,
  MEMORY,
  memoryAccess,
  oneLiteral,
  REGISTER,
  wideIndices,
} from '../c-family.ts'
import { helperCall, helperFunction } from './helpers.ts'

const { fromMemory, toMemory, access } = memoryAccess(helperCall, (x) => x)

const MATH: Spellings['math'] = {
  ...LIBRARY_MATH,
  rsqrt: (call) => `(${oneLiteral(call.dtype)} / ${libraryCall('sqrt')(call)})`,
  abs: (call) =>
    isFloat(call.dtype)
      ? libraryCall('fabs')(call)
      : call.dtype === 'u32'
        ? call.x
        : helperCall(call.helpers, 'abs_i32', call.x),
  sign: ({ x, dtype, helpers }) =>
    helperCall(helpers, `sign_${dtype === 'f64' || dtype === 'u32' || dtype === 'i32' ? dtype : 'f32'}`, x),
  popcount: helperFunction('popcount'),
  shift_left: ({ x, y }) => `(int)((unsigned)(${x}) << ((unsigned)(${y}) & 31u))`,
  shift_right: ({ x, y }) => `(int)((unsigned)(${x}) >> ((unsigned)(${y}) & 31u))`,
}

export const SPELLINGS: Spellings = {
  ...C_FAMILY,
  ...access,
  ...SERIAL_THREADS,
  name: 'c',
  wideIndices: wideIndices((op, a, b, _wraps, helpers) => helperCall(helpers, `${op}_i64`, a, b)),
  math: MATH,
  literal: literalPrinter(
    () => 'NAN',
    () => 'INFINITY',
  ),
  neg: (x, dtype) => (dtype === 'i32' ? `(int)(0u - (unsigned)${x})` : null),
  binary: (op, a, b, dtype, operand, wraps, helpers) => {
    if (op === 'min' || op === 'max') return helperCall(helpers, `${op}_${operand}`, a, b)
    // Integers wrap, as in the reference. Signed overflow is undefined in C, so the operation uses `unsigned`.
    if (dtype === 'i32' && wraps && C_SYMBOL[op])
      return `(int)((unsigned)${a} ${C_SYMBOL[op]} (unsigned)${b})`
    if (dtype === 'i32' && wraps && (op === 'quo' || op === 'rem') && !/^\d+$/.test(b))
      return helperCall(helpers, op, a, b)
    if (op === 'mod' && isFloat(operand)) return floorMod(a, b, operand)
    return null
  },
  cast: (x, from, to, helpers) => {
    if (to === 'bool') return `(${x} != 0)`
    if (isHalf(to)) {
      const value = isBeyondF32(from) ? helperCall(helpers, 'odd', x) : from === 'bool' ? `(float)(${x})` : x
      return fromMemory(to, toMemory(to, value, helpers), helpers)
    }
    if (isFloat(from) && isInt(to)) return helperCall(helpers, `to_${to}`, x)
    if (to === 'i8' || to === 'u8') return `(int)(${MEMORY[to]})(${x})`
    return `(${REGISTER[to]})(${x})`
  },
  shared: (name, dtype, length) => `${MEMORY[dtype]} ${name}[${length}];`,
  barrier: ';',
  atomic: ({ name, buffer: { dtype } }, index, op, value) => {
    if (op !== '+' || !['f32', 'f64', 'i32', 'u32'].includes(dtype)) return null
    if (dtype === 'i32')
      return `_Pragma("omp atomic") ((unsigned*)${name})[${index}] += (unsigned)(${value});`
    return `_Pragma("omp atomic") ${name}[${index}] += ${value};`
  },
  // OpenMP has no atomic minimum before 5.1; an element is always updated by one reducer.
  atomicLoop: (ref, index, combine, helpers) => [
    '_Pragma("omp critical")',
    `{ ${SPELLINGS.store(ref, index, combine(SPELLINGS.load(ref, index, helpers)), helpers, false)} }`,
  ],
}

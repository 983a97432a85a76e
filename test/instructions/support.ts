/** A small program with an instruction of each kind, for a machine that does not exist. */
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Kernel } from '../../src/node.ts'

export const MEMORIES = `
memory c_tile: f32[8, 8] in register of 32 threads {
  element (lane, slot) -> (lane / 4, lane % 4 * 2 + slot)
}
memory a_tile: f16[8, 8] in register of 32 threads {
  element (lane, slot) -> (lane / 4, lane % 4 * 2 + slot)
}
memory b_tile: f16[8, 8] in register of 32 threads {
  element (lane, slot) -> (lane % 8, lane / 8 * 2 + slot)
}
memory turned: f16[8, 16] in shared aligned 64 {
  address (i, j) -> i * 16 + bit_xor(j / 8, i % 2) * 8 + j % 8
}
memory shuffled: f16[8, 16] in shared {
  address (i, j) -> i * 16 + bit_xor(j, i % 2)
}
instr multiply(C: f32[8, 8] in c_tile, A: f16[8, 8] in a_tile, B: f16[8, 8] in b_tile) by 32 threads {
  iterate multiply [i, j, k] as SSR { C[i, j] += f32(A[i, k]) * f32(B[j, k]) }
  cuda \`multiply($C[0], $C[1], $A.word[0], $B.word[0], $lane);\`
}
instr multiply_later(C: f32[8, 8] in c_tile, A: f16[8, 8] in turned_8, B: f16[8, 8] in shared) by 32 threads asynchronous ordered {
  iterate multiply [i, j, k] as SSR { C[i, j] += f32(A[i, k]) * f32(B[k, j]) }
  cuda \`start($C[0], $C[1], $A.shared(0, 0), $B.shared(0, 0));\`
  commit cuda \`started();\`
  wait cuda \`done($pending);\`
}
memory turned_8: f16[8, 8] in shared aligned 16 {
  address (i, j) -> i * 8 + j
}
instr read_a(F: f16[8, 8] in a_tile, S: f16[8, 8] in shared aligned 16) by 32 threads {
  iterate copy [i, k] as SS { F[i, k] = S[i, k] }
  cuda \`read_a($F.word[0], $S.shared(lane % 8, 0));\`
}
instr copy8(D: f16[8] in shared aligned 16, S: f16[8] in global aligned 16) asynchronous {
  iterate copy [i] as S { D[i] = S[i] }
  cuda \`copy8($D.shared(0), $S.at(0));\`
  commit cuda \`commit();\`
  wait cuda \`wait($pending);\`
}`

export const PRODUCT = `
kernel product(m: size, n: size, k: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis p = dense_fixed(k)
  buffer A: f16[i, p] in
  buffer B: f16[p, j] in
  buffer C: f32[i, j] out
  iterate product [i, j, p] as SSR { C[i, j] += A[i, p] * B[p, j] }
}`

/** What the steps of a product on tiles of 16 × 16 begin with. */
export const TILED = `
  require m % 16 == 0
  require n % 16 == 0
  require k % 16 == 0
  tile (i, j) by (16, 16) -> (io, jo, ii, ji)
  tile (ii, ji) by (8, 8) -> (it, jt, ir, jr)
  split p by 16 -> (po, pi)
  split pi by 8 -> (pt, pr)
  reorder (io, jo, it, jt, po, pt, ir, jr, pr)
  bind io to block.y, jo to block.x, it to thread.z, jt to thread.y
  cache_write C at jt in c_tile -> Cr`

export const IN_SHARED = `
  cache_read A at po in turned -> As
  cache_read B at po in shared -> Bs`

export const FRAGMENTS = `
  cache_read As at pt in a_tile -> Ar
  cache_read Bs at pt in b_tile -> Br`

/** The product under a schedule. */
export const scheduled = (steps: string, kernel = PRODUCT): Kernel =>
  parseProgram(`${MEMORIES}\n${kernel}\nschedule product.tested {\n${steps}\n}`)
    .kernel('product')
    .schedule('tested')

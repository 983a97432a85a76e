/** Loops over typed arrays as one writes them by hand: what emitted JavaScript is measured against. */

/** A matrix by rows. */
export interface Csr {
  readonly rows: number
  readonly columns: number
  readonly indptr: Int32Array
  readonly indices: Int32Array
  readonly values: Float32Array
}

/** C = A B, one product after the other into the row of C. B is columns × d, C rows × d. */
export function spmmPlain(A: Csr, B: Float32Array, C: Float32Array, d: number): void {
  const { rows, indptr, indices, values } = A
  C.fill(0)
  for (let i = 0; i < rows; i++) {
    const c = i * d
    const end = indptr[i + 1]!
    for (let p = indptr[i]!; p < end; p++) {
      const a = values[p]!
      const b = indices[p]! * d
      for (let f = 0; f < d; f++) C[c + f]! += a * B[b + f]!
    }
  }
}

/** The same with four features at a time. */
export function spmmUnrolled(A: Csr, B: Float32Array, C: Float32Array, d: number): void {
  const { rows, indptr, indices, values } = A
  const main = d - (d % 4)
  C.fill(0)
  for (let i = 0; i < rows; i++) {
    const c = i * d
    const end = indptr[i + 1]!
    for (let p = indptr[i]!; p < end; p++) {
      const a = values[p]!
      const b = indices[p]! * d
      for (let f = 0; f < main; f += 4) {
        C[c + f]! += a * B[b + f]!
        C[c + f + 1]! += a * B[b + f + 1]!
        C[c + f + 2]! += a * B[b + f + 2]!
        C[c + f + 3]! += a * B[b + f + 3]!
      }
      for (let f = main; f < d; f++) C[c + f]! += a * B[b + f]!
    }
  }
}

/** Four sums in local variables, over all products of the row. */
export function spmmLocals4(A: Csr, B: Float32Array, C: Float32Array, d: number): void {
  const { rows, indptr, indices, values } = A
  const main = d - (d % 4)
  for (let i = 0; i < rows; i++) {
    const c = i * d
    const start = indptr[i]!
    const end = indptr[i + 1]!
    for (let f = 0; f < main; f += 4) {
      let s0 = 0
      let s1 = 0
      let s2 = 0
      let s3 = 0
      for (let p = start; p < end; p++) {
        const a = values[p]!
        const b = indices[p]! * d + f
        s0 += a * B[b]!
        s1 += a * B[b + 1]!
        s2 += a * B[b + 2]!
        s3 += a * B[b + 3]!
      }
      C[c + f] = s0
      C[c + f + 1] = s1
      C[c + f + 2] = s2
      C[c + f + 3] = s3
    }
    for (let f = main; f < d; f++) {
      let s = 0
      for (let p = start; p < end; p++) s += values[p]! * B[indices[p]! * d + f]!
      C[c + f] = s
    }
  }
}

/** Eight sums in local variables. */
export function spmmLocals8(A: Csr, B: Float32Array, C: Float32Array, d: number): void {
  const { rows, indptr, indices, values } = A
  const main = d - (d % 8)
  for (let i = 0; i < rows; i++) {
    const c = i * d
    const start = indptr[i]!
    const end = indptr[i + 1]!
    for (let f = 0; f < main; f += 8) {
      let s0 = 0
      let s1 = 0
      let s2 = 0
      let s3 = 0
      let s4 = 0
      let s5 = 0
      let s6 = 0
      let s7 = 0
      for (let p = start; p < end; p++) {
        const a = values[p]!
        const b = indices[p]! * d + f
        s0 += a * B[b]!
        s1 += a * B[b + 1]!
        s2 += a * B[b + 2]!
        s3 += a * B[b + 3]!
        s4 += a * B[b + 4]!
        s5 += a * B[b + 5]!
        s6 += a * B[b + 6]!
        s7 += a * B[b + 7]!
      }
      C[c + f] = s0
      C[c + f + 1] = s1
      C[c + f + 2] = s2
      C[c + f + 3] = s3
      C[c + f + 4] = s4
      C[c + f + 5] = s5
      C[c + f + 6] = s6
      C[c + f + 7] = s7
    }
    for (let f = main; f < d; f++) {
      let s = 0
      for (let p = start; p < end; p++) s += values[p]! * B[indices[p]! * d + f]!
      C[c + f] = s
    }
  }
}

/** y = A x. */
export function spmv(A: Csr, x: Float32Array, y: Float32Array): void {
  const { rows, indptr, indices, values } = A
  for (let i = 0; i < rows; i++) {
    const end = indptr[i + 1]!
    let sum = 0
    for (let p = indptr[i]!; p < end; p++) sum += values[p]! * x[indices[p]!]!
    y[i] = sum
  }
}

/** C = A ∘ (X Yᵀ): X is rows × d, Y columns × d, C one value for each element of A. */
export function sddmm(A: Csr, X: Float32Array, Y: Float32Array, C: Float32Array, d: number): void {
  const { rows, indptr, indices, values } = A
  for (let i = 0; i < rows; i++) {
    const x = i * d
    const end = indptr[i + 1]!
    for (let p = indptr[i]!; p < end; p++) {
      const y = indices[p]! * d
      let sum = 0
      for (let k = 0; k < d; k++) sum += X[x + k]! * Y[y + k]!
      C[p] = values[p]! * sum
    }
  }
}

/** The same with four sums. */
export function sddmmUnrolled(A: Csr, X: Float32Array, Y: Float32Array, C: Float32Array, d: number): void {
  const { rows, indptr, indices, values } = A
  const main = d - (d % 4)
  for (let i = 0; i < rows; i++) {
    const x = i * d
    const end = indptr[i + 1]!
    for (let p = indptr[i]!; p < end; p++) {
      const y = indices[p]! * d
      let s0 = 0
      let s1 = 0
      let s2 = 0
      let s3 = 0
      for (let k = 0; k < main; k += 4) {
        s0 += X[x + k]! * Y[y + k]!
        s1 += X[x + k + 1]! * Y[y + k + 1]!
        s2 += X[x + k + 2]! * Y[y + k + 2]!
        s3 += X[x + k + 3]! * Y[y + k + 3]!
      }
      for (let k = main; k < d; k++) s0 += X[x + k]! * Y[y + k]!
      C[p] = values[p]! * (s0 + s1 + s2 + s3)
    }
  }
}

! c = a + b in Fortran: blocks of block_size elements; the macros are the parameters of vector_add_fortran.toml.
subroutine vector_add(count, a, b, c)
  implicit none
  integer(4), intent(in) :: count
  real(4), intent(in) :: a(count), b(count)
  real(4), intent(out) :: c(count)
  integer(4) :: first, last
#if whole_array == 1
  do first = 1, count, block_size
    last = min(first + block_size - 1, count)
    c(first:last) = a(first:last) + b(first:last)
  end do
#else
  integer(4) :: i
  do first = 1, count, block_size
    last = min(first + block_size - 1, count)
    do i = first, last
      c(i) = a(i) + b(i)
    end do
  end do
#endif
end subroutine

! The ring with the module mpi_f08.
program ring
  use mpi_f08
  implicit none
  integer :: rank, size, step, code
  type(MPI_Comm) :: half
  type(MPI_Request) :: requests(2)
  double precision, asynchronous :: sent(1), received(1), total(1)
  include 'body.inc'
end program ring

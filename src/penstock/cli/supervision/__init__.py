"""What `penstock dev` does: plan the processes of an application, keep them alive, show them."""
